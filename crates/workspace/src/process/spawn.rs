//! Starting a program in a session of its own, by `posix_spawn`.
//!
//! The standard library can do this only by `fork`, which copies our page tables and makes us pay
//! for every page we touch afterwards: more than everything else we do in an iteration together.
//! `posix_spawn` borrows our memory until the program runs.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_short};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;

use super::registry::Token;
use super::{CommandLine, GIT_LOCATION, Input, Launch, NotFound, system};

pub(super) struct Spawned {
    pub(super) main: Pid,
    pub(super) stdin: Option<File>,
    pub(super) stdout: File,
    pub(super) stderr: File,
}

/// Where a program's output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// To be read while it runs.
    Pipes,
    /// To be read when it has ended.
    Memory,
}

impl Streams {
    /// Our end and the program's.
    fn open(self) -> io::Result<(File, OwnedFd)> {
        match self {
            Self::Pipes => {
                let (ours, theirs) = io::pipe()?;
                Ok((OwnedFd::from(ours).into(), theirs.into()))
            }
            Self::Memory => {
                let file = memfd_create(c"output", MemfdFlags::CLOEXEC)?;
                Ok((file.try_clone()?.into(), file))
            }
        }
    }
}

pub(super) fn spawn(launch: &Launch, token: Token, streams: Streams) -> io::Result<Spawned> {
    let environment = environment(launch);
    let (program, arguments) = command(launch, &environment)?;
    let (child_in, stdin) = match &launch.stdin {
        Input::Nothing => (OwnedFd::from(File::open("/dev/null")?), None),
        Input::Bytes(_) => {
            let (reader, writer) = io::pipe()?;
            (reader.into(), Some(File::from(OwnedFd::from(writer))))
        }
        Input::Pipe(reader) => (reader.try_clone()?.into(), None),
    };
    let ((stdout, child_out), (stderr, child_err)) = (streams.open()?, streams.open()?);
    let streams = [child_in.as_raw_fd(), child_out.as_raw_fd(), child_err.as_raw_fd()];
    let order = Order { cwd: zero_ended(launch.cwd.as_os_str())?, streams, environment: &environment };
    let main = system::with_token(token, || match order.start(&program, &arguments) {
        // As `execvp` does: a script that does not say what runs it is for the shell.
        Err(error) if error.raw_os_error() == Some(libc::ENOEXEC) => {
            let mut of_shell = vec![c"sh".to_owned(), program.clone()];
            of_shell.extend(arguments.iter().skip(1).cloned());
            order.start(c"/bin/sh", &of_shell)
        }
        other => other,
    })?;
    Ok(Spawned { main, stdin, stdout, stderr })
}

/// Ours, with what the launch takes away and adds: `NAME=value`, each name once.
fn environment(launch: &Launch) -> Vec<CString> {
    let mut added: Vec<(&OsStr, &OsStr)> =
        launch.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
    if let Some((name, value)) = &launch.marker {
        added.push((name.as_ref(), value.as_ref()));
    }
    let last_of_its_name = |at: usize| added[at + 1..].iter().all(|(other, _)| *other != added[at].0);
    let removed = |name: &OsStr| {
        GIT_LOCATION.iter().any(|gone| name == *gone)
            || launch.env_remove.iter().any(|gone| name == gone.as_os_str())
    };
    let ours = std::env::vars_os()
        .filter(|(name, _)| !removed(name) && added.iter().all(|(other, _)| name != other))
        .filter_map(|(name, value)| variable(&name, &value));
    let theirs = (0..added.len())
        .filter(|&at| last_of_its_name(at))
        .filter_map(|at| variable(added[at].0, added[at].1));
    ours.chain(theirs).collect()
}

/// Nothing for what no environment can hold.
fn variable(name: &OsStr, value: &OsStr) -> Option<CString> {
    let mut both = OsString::with_capacity(name.len() + value.len() + 2);
    both.push(name);
    both.push("=");
    both.push(value);
    CString::new(both.into_vec()).ok()
}

/// The file to run and its arguments, its own name included; the helper's where there is one, which
/// then becomes the program.
fn command(launch: &Launch, environment: &[CString]) -> io::Result<(CString, Vec<CString>)> {
    let program = program(launch, environment)?;
    let (file, name, args) = match &launch.confinement {
        None => (program, launch.command.program.clone(), launch.command.args.clone()),
        Some(confinement) => {
            // The helper could say that it is missing only in words.
            let program = OsString::from_vec(program.into_bytes());
            CommandLine::new(&program, Vec::<OsString>::new()).resolve(&launch.cwd).map_err(not_found)?;
            let helper = confinement.helper.clone().into_os_string();
            (zero_ended(&helper)?, helper, confinement.arguments(program, &launch.command.args))
        }
    };
    let all: io::Result<Vec<CString>> = [name].iter().chain(&args).map(|word| zero_ended(word)).collect();
    Ok((file, all?))
}

/// The file to run, looked for where the program itself would look for others.
fn program(launch: &Launch, environment: &[CString]) -> io::Result<CString> {
    let name = Path::new(&launch.command.program);
    if name.as_os_str().as_bytes().contains(&b'/') {
        return zero_ended(name.as_os_str());
    }
    let path = environment.iter().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    // The same default as the C library's, without the current directory.
    let path = path.map_or(OsStr::new("/bin:/usr/bin"), OsStr::from_bytes);
    let found = launch.command.resolve_in(&launch.cwd, path);
    zero_ended(found.map_err(not_found)?.as_os_str())
}

fn not_found(problem: NotFound) -> io::Error {
    io::Error::from_raw_os_error(match problem {
        NotFound::InPath { .. } | NotFound::Missing { .. } => libc::ENOENT,
        NotFound::NotExecutable { .. } => libc::EACCES,
    })
}

fn zero_ended(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Everything about a start but the program.
struct Order<'a> {
    cwd: CString,
    streams: [RawFd; 3],
    environment: &'a [CString],
}

impl Order<'_> {
    fn start(&self, program: &std::ffi::CStr, arguments: &[CString]) -> io::Result<Pid> {
        let actions = Actions::new(&self.cwd, self.streams)?;
        let attributes = Attributes::new()?;
        let (arguments, environment) = (pointers(arguments), pointers(self.environment));
        let mut pid: libc::pid_t = 0;
        // SAFETY: both lists end in a null pointer, and every pointer in them and the other
        // arguments is to something that lives until the call returns.
        let error = unsafe {
            libc::posix_spawn(
                &raw mut pid,
                program.as_ptr(),
                actions.0.as_ptr(),
                attributes.0.as_ptr(),
                arguments.as_ptr().cast(),
                environment.as_ptr().cast(),
            )
        };
        checked(error)?;
        Pid::from_raw(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }
}

/// A list as C wants it; it points into `texts`.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// What happens between the start and the program: streams put in place, directory changed. Boxed,
/// since nobody promises that the C library's struct may move.
struct Actions(Box<MaybeUninit<libc::posix_spawn_file_actions_t>>);

impl Actions {
    fn new(cwd: &CString, streams: [RawFd; 3]) -> io::Result<Self> {
        let mut actions = Box::new(MaybeUninit::uninit());
        // SAFETY: the pointer is to memory for such a struct.
        checked(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        let mut actions = Self(actions);
        for (target, stream) in (0..).zip(streams) {
            // SAFETY: initialised above. Our own numbers 0 to 2 are always open, so that none of
            // the streams can be one of them.
            checked(unsafe {
                libc::posix_spawn_file_actions_adddup2(actions.0.as_mut_ptr(), stream, target)
            })?;
        }
        // SAFETY: initialised above; the path is copied.
        checked(unsafe { libc::posix_spawn_file_actions_addchdir_np(actions.0.as_mut_ptr(), cwd.as_ptr()) })?;
        Ok(actions)
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: only values that were initialised come into being.
        unsafe { libc::posix_spawn_file_actions_destroy(self.0.as_mut_ptr()) };
    }
}

/// Beyond it are real-time signals, the first of which belong to the C library.
const LAST_SIGNAL: c_int = 31;

/// A session of its own; no signal blocked, none ignored: we ignore SIGPIPE, as Rust programs do, and
/// whoever started us may ignore others.
struct Attributes(Box<MaybeUninit<libc::posix_spawnattr_t>>);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = Box::new(MaybeUninit::uninit());
        // SAFETY: the pointer is to memory for such a struct.
        checked(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        let mut attributes = Self(attributes);
        let flags =
            libc::POSIX_SPAWN_SETSID as c_int | libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let flags = c_short::try_from(flags).unwrap_or_default();
        let mut blocked = MaybeUninit::uninit();
        let mut default = MaybeUninit::uninit();
        // SAFETY: the attributes were initialised above; `sigemptyset` initialises the sets before
        // they are used, and they are copied.
        unsafe {
            libc::sigemptyset(blocked.as_mut_ptr());
            libc::sigemptyset(default.as_mut_ptr());
            for signal in (1..=LAST_SIGNAL).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal))
            {
                libc::sigaddset(default.as_mut_ptr(), signal);
            }
            checked(libc::posix_spawnattr_setsigmask(attributes.0.as_mut_ptr(), blocked.as_ptr()))?;
            checked(libc::posix_spawnattr_setsigdefault(attributes.0.as_mut_ptr(), default.as_ptr()))?;
            checked(libc::posix_spawnattr_setflags(attributes.0.as_mut_ptr(), flags))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: only values that were initialised come into being.
        unsafe { libc::posix_spawnattr_destroy(self.0.as_mut_ptr()) };
    }
}

/// These calls return the error instead of setting it.
fn checked(error: c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}
