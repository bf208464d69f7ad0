//! The questions that wait for a person, and their answers. The first answer wins; whoever comes later is
//! told who it was. Where a person is known by name, they may correct their own answer until it is taken up.

use serde::Serialize;
use wiggum_core::event::{Answer, Event, Request};
use wiggum_core::ids::QuestionId;
use wiggum_store::{LoopRecord, Pending};

use crate::desk::post::{Corrects, Reply, Settled};
use crate::desk::{DeskError, Loops};
use crate::status::{QuestionStatus, Status};
use crate::words::answer_words;

/// A question as it lies in the inbox.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Letter {
    pub loop_id: String,
    pub loop_name: String,
    #[serde(flatten)]
    pub question: QuestionStatus,
    /// The command that answers it.
    pub answer_with: String,
    /// An answer that waits for the loop's next run.
    pub answered: Option<Answer>,
}

/// An answer on its way.
#[derive(Clone, Debug)]
pub struct Given {
    pub record: LoopRecord,
    pub request: Request,
    pub reply: Reply,
}

impl Loops {
    /// What waits for a person, in one loop or in all.
    pub fn inbox(&self, which: Option<&str>) -> Result<Vec<Letter>, DeskError> {
        let mut letters = Vec::new();
        for record in self.meant(which)? {
            for question in self.status(&record)?.questions {
                letters.push(Letter {
                    loop_id: record.id.to_string(),
                    loop_name: record.identity.name.clone(),
                    answer_with: how_to_answer(&question),
                    answered: self.waiting_answer(&record, &question.id)?.and_then(answer_of),
                    question,
                });
            }
        }
        Ok(letters)
    }

    /// Answers a question in somebody's name: with the number of an option, in own words, or with skip,
    /// retry or abort.
    pub fn answer(
        &mut self,
        which: Option<&str>,
        question: &str,
        text: &str,
        by: &str,
    ) -> Result<Given, DeskError> {
        self.answer_once(which, question, text, by, Corrects::Nothing)
    }

    /// As [`Loops::answer`], also where the same person has given another answer that nobody has taken up yet.
    pub fn answer_or_correct(
        &mut self,
        which: Option<&str>,
        question: &str,
        text: &str,
        by: &str,
    ) -> Result<Given, DeskError> {
        self.answer_once(which, question, text, by, Corrects::OwnAnswer)
    }

    fn answer_once(
        &mut self,
        which: Option<&str>,
        question: &str,
        text: &str,
        by: &str,
        corrects: Corrects,
    ) -> Result<Given, DeskError> {
        let id = question
            .parse::<QuestionId>()
            .map_err(|_| DeskError::NoQuestionId { text: question.to_owned() })?;
        let (record, question) = self.find_question(id, which)?;
        let answer = understand(text, id, &question)?;
        let request = Request::Answer { question: id, answer };
        let former = self.waiting_answer(&record, &id.to_string())?;
        let settled = Settled { silence: "answered", corrects, ..Settled::default() };
        match self.deliver(&record, &request, by, settled) {
            Ok(mut reply) => {
                if let Some(former) = former.and_then(answer_of) {
                    let former = answer_words(&former);
                    reply.message = format!("in place of \"{former}\": {}", reply.message);
                }
                Ok(Given { record, request, reply })
            }
            // Somebody may have been quicker by a moment.
            Err(DeskError::Refused { why }) => {
                Err(self.answered(&record, id)?.unwrap_or(DeskError::Refused { why }))
            }
            Err(error) => Err(error),
        }
    }

    /// The questions of a loop to which nobody has given an answer, not even one that waits for the next run.
    pub fn unanswered(
        &self,
        record: &LoopRecord,
        questions: &[QuestionStatus],
    ) -> Result<Vec<QuestionStatus>, DeskError> {
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let answered: Vec<String> = self
            .store
            .pending(record.id)?
            .iter()
            .filter_map(|pending| {
                let Request::Answer { question, .. } = &pending.request else { return None };
                Some(question.to_string())
            })
            .collect();
        Ok(questions.iter().filter(|question| !answered.contains(&question.id)).cloned().collect())
    }

    /// The answer that a question has got and nobody has taken up yet, and whose it is.
    fn waiting_answer(&self, record: &LoopRecord, question: &str) -> Result<Option<Pending>, DeskError> {
        let about_it = |pending: &Pending| matches!(&pending.request, Request::Answer { question: id, .. } if id.to_string() == question);
        // The last, where somebody has corrected an earlier one.
        Ok(self.store.pending(record.id)?.into_iter().rfind(about_it))
    }

    /// A question that is open, and in which loop.
    fn find_question(
        &self,
        id: QuestionId,
        which: Option<&str>,
    ) -> Result<(LoopRecord, QuestionStatus), DeskError> {
        let records = self.meant(which)?;
        let (mut found, mut open) = (Vec::new(), Vec::new());
        for record in &records {
            for question in self.status(record)?.questions {
                open.push(question.id.clone());
                if question.id == id.to_string() {
                    found.push((record.clone(), question));
                }
            }
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(self.answered_in_one(&records, id)?.unwrap_or(DeskError::NotOpen { id, open })),
            _ => {
                let names: Vec<&str> =
                    found.iter().map(|(record, _)| record.identity.name.as_str()).collect();
                Err(DeskError::SeveralAsk { id, names: names.join(", ") })
            }
        }
    }

    /// Every loop counts its own questions, so who answered one can be told only where one loop is meant.
    fn answered_in_one(
        &self,
        records: &[LoopRecord],
        id: QuestionId,
    ) -> Result<Option<DeskError>, DeskError> {
        match records {
            [one] => self.answered(one, id),
            [] | [..] => Ok(None),
        }
    }

    /// A question that is closed says who answered it.
    pub(super) fn require_open(
        &self,
        record: &LoopRecord,
        id: QuestionId,
        status: &Status,
    ) -> Result<(), DeskError> {
        let open: Vec<String> = status.questions.iter().map(|question| question.id.clone()).collect();
        if open.contains(&id.to_string()) {
            return Ok(());
        }
        Err(self.answered(record, id)?.unwrap_or(DeskError::NotOpen { id, open }))
    }

    fn answered(&self, record: &LoopRecord, question: QuestionId) -> Result<Option<DeskError>, DeskError> {
        let mut found = None;
        self.store.for_each(record.id, 0, |envelope| match envelope.event {
            Event::QuestionAnswered { id, answer, by } if id == question => {
                found = Some(DeskError::Answered { id, by, at: envelope.at, answer: answer_words(&answer) });
            }
            _ => {}
        })?;
        Ok(found)
    }

    /// The loop that was named, or all.
    fn meant(&self, which: Option<&str>) -> Result<Vec<LoopRecord>, DeskError> {
        match which {
            Some(which) => Ok(vec![self.select(Some(which))?]),
            None => self.all(),
        }
    }
}

fn answer_of(pending: Pending) -> Option<Answer> {
    match pending.request {
        Request::Answer { answer, .. } => Some(answer),
        _ => None,
    }
}

/// The command that answers a question.
pub fn how_to_answer(question: &QuestionStatus) -> String {
    answer_with(&question.id, question.options.len(), question.takes_words)
}

/// The same, by what the question is called, how many options it has and whether it takes words.
pub fn answer_with(id: &str, options: usize, takes_words: bool) -> String {
    let options = match options {
        0 => String::new(),
        1 => "1|".to_owned(),
        count => format!("1-{count}|"),
    };
    let words = if takes_words { "\"your own words\"|skip|retry" } else { "retry|skip|done" };
    format!("wiggum answer {id} {options}{words}|abort")
}

fn understand(text: &str, id: QuestionId, question: &QuestionStatus) -> Result<Answer, DeskError> {
    let options = question.options.len();
    let text = text.trim();
    match text.to_lowercase().as_str() {
        "" => return Err(DeskError::EmptyAnswer),
        "skip" => return Ok(Answer::Skip),
        "retry" => return Ok(Answer::Retry),
        "abort" => return Ok(Answer::Abort),
        "done" => return Ok(Answer::Done),
        _ => {}
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        let words = Answer::Words { text: text.to_owned() };
        return if question.takes_words { Ok(words) } else { Err(DeskError::NoWords { id }) };
    }
    match text.parse::<u32>() {
        Ok(number) if usize::try_from(number).is_ok_and(|n| (1..=options).contains(&n)) => {
            Ok(Answer::Option { number })
        }
        Ok(_) | Err(_) => Err(DeskError::NoOption { id, text: text.to_owned(), options }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_options_words_or_commands() {
        let question = |options: usize| QuestionStatus {
            id: "q1".to_owned(),
            task: None,
            kind: "failed".to_owned(),
            summary: String::new(),
            context: String::new(),
            question: String::new(),
            options: vec![String::new(); options],
            takes_words: true,
            raised_at: jiff::Timestamp::UNIX_EPOCH,
        };
        let check = |text: &str, options: usize, expected: Option<Answer>| {
            assert_eq!(understand(text, QuestionId(1), &question(options)).ok(), expected, "{text:?}");
        };
        let words = |text: &str| Some(Answer::Words { text: text.to_owned() });
        check("2", 2, Some(Answer::Option { number: 2 }));
        check("3", 2, None);
        check("0", 2, None);
        check("1", 0, None);
        check("99999999999", 2, None);
        check("Skip", 0, Some(Answer::Skip));
        check(" retry ", 0, Some(Answer::Retry));
        check("abort", 3, Some(Answer::Abort));
        check("use the v2 API", 3, words("use the v2 API"));
        check("2 of them", 3, words("2 of them"));
        check("  ", 3, None);
        let of_call = QuestionStatus { takes_words: false, ..question(4) };
        assert!(matches!(
            understand("do NOT send this", QuestionId(1), &of_call),
            Err(DeskError::NoWords { .. })
        ));
        assert_eq!(understand("3", QuestionId(1), &of_call).ok(), Some(Answer::Option { number: 3 }));
        assert_eq!(understand("done", QuestionId(1), &of_call).ok(), Some(Answer::Done));
        assert_eq!(how_to_answer(&of_call), "wiggum answer q1 1-4|retry|skip|done|abort");
        assert_eq!(how_to_answer(&question(0)), "wiggum answer q1 \"your own words\"|skip|retry|abort");
    }
}
