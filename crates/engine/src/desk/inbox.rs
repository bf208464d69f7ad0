//! The questions that wait for a person, and their answers. The first answer wins; whoever comes later is
//! told who it was. Where a person is known by name, they may correct their own answer until it is taken up.

use serde::Serialize;
use wiggum_core::event::{Answer, Event, Request};
use wiggum_core::ids::{LoopId, QuestionId};
use wiggum_store::{LoopRecord, Pending, Store, StoreError};

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
    /// The backlog of the loop.
    pub backlog: String,
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
            let named = self.named_to_answer(&record)?;
            for question in self.status(&record)?.questions {
                letters.push(Letter {
                    loop_id: record.id.to_string(),
                    loop_name: record.identity.name.clone(),
                    backlog: record.identity.backlog.clone(),
                    answer_with: how_to_answer(&question, named.as_deref()),
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
                Err(self.who_answered(&record, id)?.unwrap_or(DeskError::Refused { why }))
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
        let answered = self.answered(record.id)?;
        Ok(questions.iter().filter(|question| !answered.contains(&question.id)).cloned().collect())
    }

    /// The questions of a loop with an answer that waits for the next run.
    pub fn answered(&self, id: LoopId) -> Result<Vec<String>, DeskError> {
        Ok(answered(&self.store, id)?)
    }

    /// What a command has to call this loop so that it answers this loop's question: nothing where no other loop asks.
    pub fn named_to_answer(&self, record: &LoopRecord) -> Result<Option<String>, DeskError> {
        for other in self.all()?.iter().filter(|other| other.id != record.id) {
            if !self.stored_status(other)?.questions.is_empty() {
                return self.call_name(record).map(Some);
            }
        }
        Ok(None)
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
        if found.len() > 1 {
            let near = self.nearest(&records);
            let is_near = |record: &LoopRecord| near.iter().any(|other| other.id == record.id);
            if found.iter().filter(|(record, _)| is_near(record)).count() == 1 {
                found.retain(|(record, _)| is_near(record));
            }
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(self.answered_in_one(&records, id)?.unwrap_or(DeskError::NotOpen { id, open })),
            _ => {
                let names = found.iter().map(|(record, _)| self.call_name(record));
                Err(DeskError::SeveralAsk { id, names: names.collect::<Result<_, _>>()? })
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
            [one] => self.who_answered(one, id),
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
        Err(self.who_answered(record, id)?.unwrap_or(DeskError::NotOpen { id, open }))
    }

    fn who_answered(
        &self,
        record: &LoopRecord,
        question: QuestionId,
    ) -> Result<Option<DeskError>, DeskError> {
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

/// The questions of a loop with an answer that waits for the next run.
pub(crate) fn answered(store: &Store, id: LoopId) -> Result<Vec<String>, StoreError> {
    let pending = store.pending(id)?.into_iter();
    Ok(pending
        .filter_map(|pending| match pending.request {
            Request::Answer { question, .. } => Some(question.to_string()),
            _ => None,
        })
        .collect())
}

/// The command that answers a question. `named`: what its loop has to be called, if anything.
pub fn how_to_answer(question: &QuestionStatus, named: Option<&str>) -> String {
    answer_with(&question.id, question.options.len(), question.takes_words, named)
}

/// The same, by what the question is called, how many options it has and whether it takes words.
pub fn answer_with(id: &str, options: usize, takes_words: bool, named: Option<&str>) -> String {
    let of = named.map(|name| format!(" --loop {name}")).unwrap_or_default();
    format!("wiggum answer{of} {id} {}", answers(options, takes_words))
}

/// What a question takes.
fn answers(options: usize, takes_words: bool) -> String {
    let options = match options {
        0 => String::new(),
        1 => "1|".to_owned(),
        count => format!("1-{count}|"),
    };
    let words = if takes_words { "\"your own words\"|" } else { "" };
    format!("{options}{words}skip|retry|done|abort")
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
        Ok(_) | Err(_) => {
            let how = format!("it takes {}", answers(options, question.takes_words));
            Err(DeskError::NoOption { id, text: text.to_owned(), how })
        }
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
        assert_eq!(how_to_answer(&of_call, None), "wiggum answer q1 1-4|skip|retry|done|abort");
        assert_eq!(
            how_to_answer(&question(0), Some("a/TODO.md")),
            "wiggum answer --loop a/TODO.md q1 \"your own words\"|skip|retry|done|abort"
        );
        let hint = understand("9", QuestionId(1), &of_call).unwrap_err().hint();
        assert_eq!(hint.as_deref(), Some("it takes 1-4|skip|retry|done|abort"), "words would be refused too");
    }
}
