//! Reading of configuration files. Pipes, devices and endless files are refused, since they would block the reader.

use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use subak_wire::Secret;

/// Largest configuration, bytes.
pub const CONFIG: u64 = 16 << 20;
/// Largest network or routes file, bytes.
pub const NETWORK: u64 = 256 << 20;
/// Largest key or token file, bytes.
pub const SECRET: u64 = 4096;

/// Text of the file at `path`; an error if others than its owner and group can read it.
pub fn secret(path: &Path) -> Result<String, String> {
    let found = text(path, SECRET)?;
    let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode());
    Secret::check_mode(mode).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(found)
}

/// Text of the file at `path`, at most `most_bytes`. An error names the file, the problem and a hint.
pub fn text(path: &Path, most_bytes: u64) -> Result<String, String> {
    let say = |what: &str, hint: &str| format!("{}: {what}; {hint}", path.display());
    let system = |e: std::io::Error| say(&e.to_string(), "name a file that this user may read");
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    let file = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path).map_err(system)?;
    let found = file.metadata().map_err(system)?;
    if !found.is_file() {
        return Err(say("it is no ordinary file", "name one"));
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes).map_err(system)?;
    if bytes.len() as u64 > most_bytes {
        return Err(say(&format!("it has more than {most_bytes} bytes"), "name the right file"));
    }
    String::from_utf8(bytes)
        .map_err(|e| say(&format!("byte {} is no UTF-8", e.utf8_error().valid_up_to()), "write text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        let path = std::env::temp_dir().join(format!("subak-key-{}", std::process::id()));
        std::fs::write(&path, "12345").unwrap();
        for (mode, is_fine) in [(0o600, true), (0o640, true), (0o644, false), (0o666, false), (0o620, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(secret(&path).is_ok(), is_fine, "{mode:o}: {:?}", secret(&path));
        }
        assert!(secret(&path).unwrap_err().contains("mode 620"));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_no_file_or_too_long_is_refused() {
        let folder = std::env::temp_dir().join(format!("subak-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(text(&path, 5).as_deref(), Ok("12345"));
        assert!(text(&path, 4).unwrap_err().contains("more than 4 bytes"));
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert!(text(&path, 5).unwrap_err().contains("byte 1 is no UTF-8"));
        assert!(text(&folder, 5).unwrap_err().contains("no ordinary file"));
        assert!(text(Path::new("/dev/zero"), 5).unwrap_err().contains("no ordinary file"));
        assert!(text(&folder.join("nothing"), 5).unwrap_err().contains("name a file"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
