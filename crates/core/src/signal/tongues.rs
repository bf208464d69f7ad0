//! What keeps a claim from being meant in German, French, Spanish, Chinese and Japanese.
//!
//! Claims themselves are English, as the prompt asks for; the words around them are often not. Only
//! whether something is denied, put off or left out is read, nothing else.

/// "Die Aufgabe ist noch nicht fertig", "任务尚未完成": is the work said not to be done?
pub(super) fn says_not_done(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words: Vec<&str> = words(&lower).collect();
    let spoken = |negations: &[&str], done: &[&str]| {
        words.iter().any(|word| negations.contains(word)) && words.iter().any(|word| done.contains(word))
    };
    spoken(&["nicht", "nie", "kaum", "weder"], &GERMAN_DONE)
        || words
            .iter()
            .any(|word| ["unfertig", "unvollständig", "inachevée", "inachevé", "incompleta"].contains(word))
        || spoken(&["pas", "jamais"], &FRENCH_DONE)
        || spoken(&["no", "nunca", "tampoco"], &SPANISH_DONE)
        || says_failing(&lower, &words)
        || chinese_not_done(&lower)
        || japanese_not_done(&lower)
}

const GERMAN_DONE: [&str; 7] =
    ["fertig", "abgeschlossen", "erledigt", "vollständig", "beendet", "komplett", "vollendet"];
const FRENCH_DONE: [&str; 9] =
    ["terminée", "terminé", "finie", "fini", "complète", "complet", "achevée", "achevé", "accomplie"];
const SPANISH_DONE: [&str; 11] = [
    "terminada",
    "terminado",
    "completa",
    "completo",
    "completada",
    "completado",
    "acabada",
    "acabado",
    "lista",
    "finalizada",
    "finalizado",
];

/// "Moment, die Tests schlagen fehl": do tests fail, without a word that denies it?
fn says_failing(lower: &str, words: &[&str]) -> bool {
    const FAIL: [&str; 9] = [
        "fehl",
        "fehlgeschlagen",
        "scheitern",
        "échouent",
        "échoue",
        "échoué",
        "fallan",
        "falla",
        "fallaron",
    ];
    const DENIED: [&str; 14] = [
        "nicht", "kein", "keine", "keiner", "mehr", "pas", "aucun", "plus", "no", "ningún", "ninguna",
        "vorher", "antes", "avant",
    ];
    let has = |of: &[&str]| words.iter().any(|word| of.contains(word));
    let spoken = has(&["test", "tests", "prueba", "pruebas", "build"]) && has(&FAIL) && !has(&DENIED);
    let written = (lower.contains("测试") && lower.contains("失败") && !lower.contains("没有"))
        || (lower.contains("テスト")
            && lower.contains("失敗")
            && !lower.contains("ない")
            && !lower.contains("ません"));
    spoken || written
}

/// A negation shortly before "finished": 尚未完成, 还没有做完.
fn chinese_not_done(text: &str) -> bool {
    const DONE: [&str; 4] = ["完成", "做完", "结束", "完工"];
    DONE.iter()
        .flat_map(|done| text.match_indices(done))
        .any(|(at, _)| text[..at].chars().rev().take(3).any(|c| matches!(c, '未' | '没' | '不' | '尚')))
}

/// "Not yet" before, or a negation shortly behind "finished": まだ完了, 完了していません.
fn japanese_not_done(text: &str) -> bool {
    const DONE: [&str; 5] = ["完了", "完成", "終わ", "終了", "でき"];
    DONE.iter().any(|done| {
        text.match_indices(done).any(|(at, _)| {
            let behind: String = text[at..].chars().take(10).collect();
            text[..at].contains("まだ") || behind.contains("ません") || behind.contains("ない")
        })
    })
}

/// "Sobald die Tests laufen", "sera écrit plus tard": is what is spoken of denied or put off?
pub(super) fn puts_off(text: &str) -> bool {
    const WORDS: [&str; 41] = [
        "nicht",
        "werde",
        "wird",
        "werden",
        "sobald",
        "wenn",
        "falls",
        "bevor",
        "erst",
        "später",
        "würde",
        "sollte",
        "danach",
        "pas",
        "sera",
        "serai",
        "serait",
        "quand",
        "lorsque",
        "dès",
        "si",
        "vais",
        "avant",
        "tard",
        "écrirai",
        "encore",
        "será",
        "estará",
        "cuando",
        "escribiré",
        "voy",
        "antes",
        "después",
        "luego",
        "hasta",
        "todavía",
        "aún",
        "seré",
        "mañana",
        "bientôt",
        "demain",
    ];
    const SIGNS: [&str; 19] = [
        "将",
        "会",
        "之后",
        "以后",
        "如果",
        "一旦",
        "才能",
        "未",
        "没有",
        "还没",
        "まだ",
        "たら",
        "予定",
        "つもり",
        "後で",
        "これから",
        "ません",
        "ない",
        "時に",
    ];
    let lower = text.to_lowercase();
    words(&lower).any(|word| WORDS.contains(&word)) || SIGNS.iter().any(|sign| lower.contains(sign))
}

/// Does this line begin by leaving something out: "Außer …", "Sauf …", "除了…"?
pub(super) fn begins_exception(line: &str) -> bool {
    const WORDS: [&str; 22] = [
        "außer",
        "ausser",
        "ausgenommen",
        "abgesehen",
        "allerdings",
        "aber",
        "jedoch",
        "ohne",
        "nur",
        "sauf",
        "excepté",
        "hormis",
        "mais",
        "cependant",
        "sans",
        "excepto",
        "salvo",
        "menos",
        "pero",
        "sin",
        "solo",
        "bis",
    ];
    const SIGNS: [&str; 7] = ["除了", "除", "但", "不过", "ただし", "しかし", "以外"];
    let lower = line.to_lowercase();
    let first = words(&lower).next().unwrap_or_default();
    WORDS.contains(&first) || SIGNS.iter().any(|sign| first.starts_with(sign))
}

/// Does the line begin in a script without capital letters, or with a small letter?
pub(super) fn begins_small(line: &str) -> bool {
    line.trim_start().starts_with(|c: char| c.is_alphabetic() && !c.is_uppercase())
}

fn words(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}
