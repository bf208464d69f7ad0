//! What an agent sees of the user's other programs: credentials, and daemons that run what they are asked. Under bwrap
//! nothing of it, unless it is named; under Landlock, which cannot hide anything, that is said.
//!
//! The control is what the same agent reads and asks under Landlock.

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixListener};

use super::sandboxes;
use super::support::Sandbox;

const FILES: [&str; 16] = [
    ".ssh/id_ed25519",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/git/credentials",
    ".config/gcloud/credentials.db",
    ".config/rclone/rclone.conf",
    ".config/wiggum/page-token",
    ".gnupg/private-keys-v1.d/key",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".git-credentials",
    ".cargo/credentials.toml",
    ".mozilla/firefox/x/logins.json",
    ".local/share/keyrings/login.keyring",
];

fn furnished() -> Sandbox {
    let mut sandbox = Sandbox::walled(&["one"]);
    let home = sandbox.base().join("home");
    for file in FILES {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret\n").unwrap();
    }
    // The state of another repository.
    fs::create_dir_all(home.join(".local/state/wiggum/other")).unwrap();
    fs::write(home.join(".local/state/wiggum/other/wiggum.db"), "secret\n").unwrap();
    let run = sandbox.base().join("run");
    fs::create_dir_all(run.join("systemd")).unwrap();
    sandbox.env("XDG_RUNTIME_DIR", run.to_str().unwrap());
    sandbox.env("SSH_AUTH_SOCK", run.join("agent").to_str().unwrap());
    sandbox.env("DOCKER_HOST", &format!("unix://{}", run.join("moved.sock").display()));
    sandbox.env("TMUX_TMPDIR", run.to_str().unwrap());
    sandbox
}

/// Somebody who listens at each of these.
fn daemons(sandbox: &Sandbox) -> Vec<UnixListener> {
    let run = sandbox.base().join("run");
    let tmux = run.join(format!("tmux-{}", rustix::process::getuid().as_raw()));
    fs::create_dir_all(&tmux).unwrap();
    let places = ["bus", "systemd/private", "docker.sock", "agent", "moved.sock"];
    let places = places.iter().map(|name| run.join(name)).chain([tmux.join("default")]);
    places.map(|path| UnixListener::bind(path).unwrap()).collect()
}

/// Reads every file, and speaks to every socket.
fn curious() -> String {
    let mut script = String::from("cd ~; exec 3> \"$TMPDIR/seen\"\n");
    for file in FILES.iter().chain(&[".local/state/wiggum/other/wiggum.db"]) {
        script.push_str(&format!("grep -qs secret {file} && echo '{file}' >&3\n"));
    }
    script.push_str(
        r#"python3 - "$XDG_RUNTIME_DIR" >&3 <<'END'
import os, socket, sys
run = sys.argv[1]
for name in ["bus", "systemd/private", "docker.sock", "agent", "moved.sock", "tmux-%d/default" % os.getuid()]:
    try:
        socket.socket(socket.AF_UNIX).connect(os.path.join(run, name)); print("socket", name)
    except OSError: pass
END
exec 3>&-; cd "$SANDBOX/repo"; echo x > x; claim"#,
    );
    script
}

fn seen(sandbox: &Sandbox) -> Vec<String> {
    sandbox.note("tmp/seen").lines().map(str::to_owned).collect()
}

#[test]
fn credentials_and_daemons_are_invisible_under_bwrap_and_told_under_landlock() {
    for kind in sandboxes() {
        let sandbox = furnished();
        let _daemons = daemons(&sandbox);
        let run = sandbox.run(&curious(), &["--sandbox", kind]).exits(0);
        if kind == "bwrap" {
            assert_eq!(seen(&sandbox), Vec::<String>::new());
        } else {
            assert_eq!(seen(&sandbox).len(), FILES.len() + 7, "{:?}", seen(&sandbox));
            drop(run.says("sandbox landlock (partial): ").says("they see your credentials"));
        }
    }
}

/// A check runs what the agent wrote, and sees as much.
#[test]
fn a_check_sees_no_more() {
    for kind in sandboxes() {
        let sandbox = furnished();
        let _daemons = daemons(&sandbox);
        fs::write(sandbox.base().join("curious.sh"), format!("claim() {{ :; }}\n{}", curious())).unwrap();
        let check = "sh \"$SANDBOX/curious.sh\"";
        sandbox.run("echo y > y; claim", &["--sandbox", kind, "--verify", check]).exits(0);
        assert_eq!(seen(&sandbox).is_empty(), kind == "bwrap", "{:?}", seen(&sandbox));
    }
}

/// The honest twin: what is named is there.
#[test]
fn what_is_named_is_seen() {
    for kind in sandboxes() {
        let mut sandbox = furnished();
        let _daemons = daemons(&sandbox);
        sandbox.env("WIGGUM_AGENT_READABLE", "[\"~/.config/gh\", \"~/.ssh/id_ed25519\"]");
        let socket = sandbox.base().join("run/docker.sock");
        sandbox.env("WIGGUM_AGENT_SOCKETS", socket.to_str().unwrap());
        sandbox.run(&curious(), &["--sandbox", kind]).exits(0);
        let seen = seen(&sandbox);
        for named in [".ssh/id_ed25519", ".config/gh/hosts.yml", "socket docker.sock"] {
            assert!(seen.iter().any(|line| line == named), "{kind}: {named} of {seen:?}");
        }
        assert!(kind == "landlock" || seen.len() == 3, "{seen:?}");
    }
}

/// An agent's own places are its own, also where they would be hidden from others; what it writes there stays.
#[test]
fn what_is_writable_is_seen() {
    for kind in sandboxes() {
        let mut sandbox = furnished();
        sandbox.env("WIGGUM_AGENT_WRITABLE", "~/.gnupg");
        sandbox.run("echo mine > ~/.gnupg/file; echo x > x; claim", &["--sandbox", kind]).exits(0);
        assert_eq!(sandbox.note("home/.gnupg/file"), "mine\n", "{kind}");
    }
}

/// Sockets that are no files, from Linux 6.12 on.
#[test]
fn a_socket_that_is_no_file_is_out_of_reach() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let name = format!("wiggum-test-{}", std::process::id());
    let _daemon = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let agent = format!(
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect('\\0{name}')\" \\\n\
         && echo reached > x || echo refused > x; claim"
    );
    for kind in sandboxes().into_iter().chain(["none"]) {
        let sandbox = Sandbox::walled(&["one"]);
        sandbox.run(&agent, &["--sandbox", kind]).exits(0);
        let expected = if kind == "none" { "reached\n" } else { "refused\n" };
        assert_eq!(sandbox.read("x"), expected, "{kind}");
    }
}

/// As root too: the engine's memory, its directories and its end.
#[test]
fn the_engine_is_out_of_reach() {
    let attacks = r#"
p=$$; while [ "$p" -gt 1 ]; do
    p=$(sed -n 's/^PPid:\t//p' "/proc/$p/status")
    tr '\0' ' ' < "/proc/$p/cmdline" | grep -qe '[-]-agent-command' && break
done
try() { if sh -c "$2" > /dev/null 2>&1; then echo "$1: done"; else echo "$1: refused"; fi >> tried; }
export p
try environ 'tr "\0" "\n" < /proc/$p/environ | grep -q HOME'
try root 'ls /proc/$p/root/'
try cwd 'ls /proc/$p/cwd/'
try fd 'ls -l /proc/$p/fd/ | grep -qe "->"'
try maps 'grep -q . /proc/$p/maps'
try kill 'kill -0 $p'
claim"#;
    for kind in sandboxes().into_iter().chain(["none"]) {
        let sandbox = Sandbox::walled(&["one"]);
        sandbox.run(attacks, &["--sandbox", kind]).exits(0);
        let outcome = if kind == "none" { "done" } else { "refused" };
        let expected =
            ["environ", "root", "cwd", "fd", "maps", "kill"].map(|name| format!("{name}: {outcome}"));
        let tried = sandbox.read("tried");
        assert_eq!(tried.lines().collect::<Vec<_>>(), expected, "{kind}");
    }
}

/// The rules that are printed are those that hold.
#[test]
fn the_doctor_prints_the_rules() {
    for kind in sandboxes() {
        let mut sandbox = furnished();
        sandbox.env("WIGGUM_SANDBOX", kind);
        sandbox.env("DEPLOY_TOKEN", "tok-5f7a9c1e3b2d4f60");
        sandbox.env("WIGGUM_AGENT_COMMAND", "true");
        let text = sandbox.wiggum(&["doctor", "--sandbox"]).exits(0).stdout;
        let home = sandbox.base().join("home").display().to_string();
        for line in ["may write to", "checks:", "DEPLOY_TOKEN", &sandbox.root.display().to_string()] {
            assert!(text.contains(line), "{kind}: {line}: {text}");
        }
        let hides = text.contains(&format!("{home}/.ssh\n")) && text.contains("sees nothing of");
        assert_eq!(hides, kind == "bwrap", "{text}");
        let json = sandbox.wiggum(&["doctor", "--sandbox", "--json"]).exits(0).stdout;
        assert!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["rules"].is_array());
    }
}

/// What shells, editors, window managers and others run or obey when somebody uses them next.
const OBEYED: [&str; 40] = [
    ".bashrc",
    ".profile",
    ".zshrc",
    ".config/fish/config.fish",
    ".config/fish/conf.d/x.fish",
    ".config/nushell/config.nu",
    ".config/environment.d/x.conf",
    ".config/direnv/direnvrc",
    ".config/mise/config.toml",
    ".config/starship.toml",
    ".config/i3/config",
    ".config/sway/config",
    ".config/hypr/hyprland.conf",
    ".config/awesome/rc.lua",
    ".config/waybar/config",
    ".config/polybar/launch.sh",
    ".config/rofi/config.rasi",
    ".config/autostart/x.desktop",
    ".config/systemd/user/x.service",
    ".config/nvim/init.lua",
    ".config/helix/config.toml",
    ".config/emacs/init.el",
    ".emacs.d/init.el",
    ".vimrc",
    ".vim/plugin/x.vim",
    ".config/Code/User/tasks.json",
    ".config/kitty/kitty.conf",
    ".config/alacritty/alacritty.toml",
    ".config/wezterm/wezterm.lua",
    ".config/tmux/tmux.conf",
    ".tmux.conf",
    ".config/zellij/config.kdl",
    ".config/ranger/rc.conf",
    ".config/lf/lfrc",
    ".config/mpv/scripts/x.lua",
    ".config/git/config",
    ".local/bin/x",
    ".local/share/nvim/site/plugin/x.vim",
    ".local/share/nautilus/scripts/x",
    ".local/share/applications/x.desktop",
];

#[test]
fn an_unknown_agent_plants_nothing_that_is_run_later() {
    let mut script = String::from("cd ~\n");
    for file in OBEYED {
        script.push_str(&format!(
            "(echo planted >> {file}) 2> /dev/null && echo {file} >> \"$TMPDIR/planted\"\n"
        ));
    }
    script.push_str("cd \"$SANDBOX/repo\"; echo x > x; claim");
    for kind in sandboxes().into_iter().chain(["none"]) {
        let sandbox = Sandbox::walled(&["one"]);
        let home = sandbox.base().join("home");
        for file in OBEYED {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "before\n").unwrap();
        }
        sandbox.run(&script, &["--sandbox", kind]).exits(0);
        let planted = fs::read_to_string(sandbox.base().join("tmp/planted")).unwrap_or_default();
        let expected = if kind == "none" { OBEYED.len() } else { 0 };
        assert_eq!(planted.lines().count(), expected, "{kind}: {planted}");
        let is_as_before = |file: &&str| fs::read_to_string(home.join(file)).unwrap() == "before\n";
        assert_eq!(OBEYED.iter().all(is_as_before), kind != "none");
    }
}

/// The honest twin: an agent keeps its sessions in the directories that have its name.
#[test]
fn an_unknown_agent_writes_where_its_name_stands() {
    for kind in sandboxes() {
        let sandbox = Sandbox::walled(&["one"]);
        let home = sandbox.base().join("home");
        for directory in [".my-agent", ".config/my-agent", ".local/share/my-agent", ".config/other"] {
            fs::create_dir_all(home.join(directory)).unwrap();
        }
        let script = "#!/bin/sh\ncat > /dev/null; echo x > ~/.my-agent/s && echo x > ~/.config/my-agent/s \\\n\
                      && echo x > ~/.local/share/my-agent/s && ! (echo x > ~/.config/other/s) 2> /dev/null && echo x > x\n\
                      echo; echo '<promise>DONE</promise>'\n";
        sandbox.write_program("my-agent", script);
        sandbox.commit_all("an agent");
        let args =
            ["run", "--headless", "--sandbox", kind, "--max-retries", "0", "--agent-command", "./my-agent"];
        sandbox.wiggum(&args).exits(0);
        assert!(sandbox.exists("x"), "{kind}");
    }
}
