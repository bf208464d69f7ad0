//! Names that a new file must not take where a check finds it first: modules of Python's standard library,
//! headers of C's, and modules of tests that node would look for under the same name.

use super::command::join;
use super::{Tree, is_test_file, mentions, parent_of, runners};

/// Modules of Python's standard library, and of what runs tests.
const MODULES: &str = "\
    abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii \
    bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys \
    compileall concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses \
    datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl \
    filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib \
    grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools \
    json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap \
    modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator \
    optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
    posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re \
    readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site \
    smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat \
    statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile \
    telnetlib tempfile termios textwrap this threading time timeit tkinter token tokenize tomllib trace \
    traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings \
    wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo \
    pluggy iniconfig nose2 coverage exceptiongroup packaging";

/// Headers by which tests in C judge.
const HEADERS: [&str; 14] = [
    "assert.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "stdbool.h",
    "stdint.h",
    "math.h",
    "setjmp.h",
    "unistd.h",
    "check.h",
    "cmocka.h",
    "unity.h",
    "criterion.h",
    "gtest.h",
];

/// Would a new file of this path be taken for something that a test runner needs?
pub(super) fn takes_a_known_name(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    // Python looks where it was started and where a test lies.
    let module = match (name, folder) {
        ("__init__.py", folder) => Some(folder),
        (name, folder) if folder.is_empty() || is_test_file(path) => name.strip_suffix(".py"),
        _ => None,
    };
    let is_module = |module: &str| MODULES.split_whitespace().any(|known| known == module);
    module.is_some_and(is_module) || HEADERS.contains(&name)
}

/// Endings of what node and the runners on top of it take in without being told the ending.
const MODULE_ENDS: [&str; 10] =
    [".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".json", ".node"];

/// How many files are read to find one that imports a module.
const MAX_READ: usize = 2000;

/// The existing module of tests that a new file of this path would be taken for, where one of them imports it
/// without its ending.
pub(super) fn takes_the_place_of(path: &str, text: &str, before: &dyn Tree) -> Option<String> {
    let mut names = module_names(path);
    if path.ends_with("/package.json") {
        let is_entry = text.contains("\"main\"") || text.contains("\"exports\"");
        names.retain(|_| is_entry);
    }
    if names.is_empty() {
        return None;
    }
    let is_of_tests = |file: &String| is_test_file(file) || mentions::is_candidate(file);
    let found_as = |name: &String| {
        let ends = MODULE_ENDS.iter().flat_map(|end| [format!("{name}{end}"), format!("{name}/index{end}")]);
        ends.collect::<Vec<_>>()
    };
    let mut known = names.iter().flat_map(found_as).filter(|file| *file != path && is_of_tests(file));
    let taken = known.find(|file| before.read(file).is_some())?;
    let mut shared = module_names(&taken);
    shared.retain(|name| names.contains(name));
    let is_importing = |file: &String| {
        let text = before.read(file).unwrap_or_default();
        let imports = runners::imports(file, &text);
        imports.iter().any(|name| shared.contains(&join(parent_of(file), name)))
    };
    let is_module = |file: &&String| MODULE_ENDS[..8].iter().any(|end| file.ends_with(end));
    let is_of_checks = |file: &&String| !runners::is_source(file) || is_test_file(file);
    let files = before.files();
    let mut importing = files.iter().filter(is_module).filter(is_of_checks).take(MAX_READ);
    importing.any(is_importing).then_some(taken)
}

/// Under which names a module is found by its path, without an ending.
fn module_names(path: &str) -> Vec<String> {
    let parent = parent_of(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    if name == "package.json" {
        return Some(parent).filter(|parent| !parent.is_empty()).map(str::to_owned).into_iter().collect();
    }
    let stem = MODULE_ENDS.iter().find_map(|end| path.strip_suffix(end));
    let Some(stem) = stem.or_else(|| Some(path).filter(|_| !name.contains('.'))) else { return Vec::new() };
    let folder = stem.strip_suffix("/index").map(str::to_owned);
    folder.into_iter().chain([stem.to_owned()]).collect()
}
