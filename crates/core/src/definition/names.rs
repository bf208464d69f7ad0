//! Names that a new file must not take where a check finds it first: modules of Python's standard library, and
//! headers of C's.

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
        (name, folder) if folder.is_empty() || super::is_test_file(path) => name.strip_suffix(".py"),
        _ => None,
    };
    let is_module = |module: &str| MODULES.split_whitespace().any(|known| known == module);
    module.is_some_and(is_module) || HEADERS.contains(&name)
}
