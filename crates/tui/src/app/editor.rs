//! A line, or a few, that somebody types.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::text::plain;

/// Nobody types more, and what is pasted must not become a book.
const MOST: usize = 16 << 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    pub(crate) text: String,
    /// Where the next character goes, in bytes.
    pub(crate) at: usize,
    /// May it have several lines?
    pub(crate) lines: bool,
}

impl Editor {
    pub(crate) fn with(text: &str, lines: bool) -> Self {
        let text = if lines { plain(text) } else { crate::text::line(text) };
        Self { at: text.len(), text, lines }
    }

    /// Takes a key, if it is one for typing.
    pub(crate) fn key(&mut self, event: &KeyEvent) -> bool {
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        let alt = event.modifiers.contains(KeyModifiers::ALT);
        match event.code {
            KeyCode::Char('a') if control => self.at = self.line_start(),
            KeyCode::Char('e') if control => self.at = self.line_end(),
            KeyCode::Char('w') if control => self.erase_to(self.word_start()),
            KeyCode::Char('u') if control => self.erase_to(self.line_start()),
            KeyCode::Char('j') if control => self.type_text("\n"),
            KeyCode::Enter if alt => self.type_text("\n"),
            KeyCode::Char(c) if !control && !alt => self.type_text(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.erase_to(self.before()),
            KeyCode::Delete => {
                let next = self.after();
                self.text.replace_range(self.at..next, "");
            }
            KeyCode::Left => self.at = self.before(),
            KeyCode::Right => self.at = self.after(),
            KeyCode::Home => self.at = self.line_start(),
            KeyCode::End => self.at = self.line_end(),
            _ => return false,
        }
        true
    }

    /// Takes what was typed or pasted.
    pub(crate) fn type_text(&mut self, text: &str) {
        let text = plain(text);
        let text = if self.lines { text } else { text.replace('\n', " ") };
        if self.text.len() + text.len() <= MOST {
            self.text.insert_str(self.at, &text);
            self.at += text.len();
        }
    }

    fn erase_to(&mut self, start: usize) {
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    fn before(&self) -> usize {
        self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.at].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, code: KeyCode, modifiers: KeyModifiers) {
        assert!(editor.key(&KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn typing_is_what_people_are_used_to() {
        let mut editor = Editor::default();
        editor.type_text("größe zwei\x1b[31m");
        assert_eq!(editor.text, "größe zwei");
        press(&mut editor, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(editor.text, "größe ");
        press(&mut editor, KeyCode::Home, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Right, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Right, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Delete, KeyModifiers::NONE);
        press(&mut editor, KeyCode::Char('O'), KeyModifiers::SHIFT);
        assert_eq!(editor.text, "grOße ");
        press(&mut editor, KeyCode::Char('j'), KeyModifiers::CONTROL);
        assert_eq!(editor.text, "grO ße ", "one line stays one line");
        press(&mut editor, KeyCode::Char('u'), KeyModifiers::CONTROL);
        assert_eq!((editor.text.as_str(), editor.at), ("ße ", 0));
        assert!(!editor.key(&KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
        editor.type_text(&"x".repeat(MOST));
        assert_eq!(editor.text, "ße ", "a book is not pasted");
    }
}
