//! Writes the files of a parcel in the format that `tar -xf -` on a host reads.

use super::parcel::Entry;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use tar::{Builder, Header, HeaderMode};

const BUFFER: usize = 1 << 16;

/// Writes a complete archive of these entries.
///
/// # Errors
/// Something cannot be read (the error contains its path), or has become shorter; those of writing.
pub(super) fn write(entries: &[&Entry], to: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(BufWriter::with_capacity(BUFFER, to));
    for entry in entries {
        append(&mut archive, entry).map_err(|error| match error.kind() {
            // Nobody reads the archive any more.
            ErrorKind::BrokenPipe => error,
            kind => io::Error::new(kind, format!("{}: {error}", entry.path.display())),
        })?;
    }
    archive.into_inner()?.flush()
}

fn append(archive: &mut Builder<impl Write>, entry: &Entry) -> io::Result<()> {
    let found = entry.path.symlink_metadata()?;
    let mut header = Header::new_gnu();
    header.set_metadata_in_mode(&found, HeaderMode::Complete);
    if found.is_symlink() {
        let target = fs::read_link(&entry.path)?;
        return archive.append_link(&mut header, &entry.name, target);
    }
    if found.is_dir() {
        return archive.append_data(&mut header, &entry.name, io::empty());
    }
    if !found.is_file() {
        return Err(io::Error::other(
            "it is no file, directory or symbolic link any more",
        ));
    }
    let mut file = File::open(&entry.path)?;
    let before = file.metadata()?;
    header.set_metadata_in_mode(&before, HeaderMode::Complete);
    match is_sparse(&before) {
        true => archive.append_file(&entry.name, &mut file)?,
        false => {
            let left = before.len();
            let whole = Whole { file: &file, left };
            archive.append_data(&mut header, &entry.name, whole)?;
        }
    }
    let after = file.metadata()?;
    let state = |of: &Metadata| (of.len(), of.mtime(), of.mtime_nsec());
    match state(&before) == state(&after) {
        true => Ok(()),
        // The copy may mix the beginning of one version with the end of another.
        false => Err(io::Error::other(
            "it was changed while it was sent; send it again when nothing writes to it",
        )),
    }
}

/// Whether a file takes less space on the disk than its length. The archive then records where its holes are.
fn is_sparse(file: &Metadata) -> bool {
    file.blocks().saturating_mul(512) < file.len()
}

/// Reads as many bytes of a file as its header says, even if the file grows meanwhile.
struct Whole<'f> {
    file: &'f File,
    left: u64,
}

impl Read for Whole<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.file.read(&mut buffer[..most])?;
        if count == 0 && most > 0 {
            return Err(io::Error::other("it has become shorter while it was sent"));
        }
        self.left -= count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parcel::tests::parcel;
    use super::*;
    use std::io::{Seek, SeekFrom};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// Unpacks an archive with tar.
    fn unpacked(archive: &[u8]) -> tempfile::TempDir {
        let there = tempfile::tempdir().unwrap();
        let mut tar = Command::new("tar");
        let tar = tar.args(["-xf", "-", "-C"]).arg(there.path());
        let mut tar = tar.stdin(Stdio::piped()).spawn().unwrap();
        tar.stdin.take().unwrap().write_all(archive).unwrap();
        assert!(tar.wait().unwrap().success());
        there
    }

    #[test]
    fn tar_reads_files_directories_and_links_with_their_modes_and_times() {
        let here = tempfile::tempdir().unwrap();
        let deep = here.path().join("in").join("d".repeat(150));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("a b"), vec![b'x'; 100_000]).unwrap();
        fs::set_permissions(deep.join("a b"), PermissionsExt::from_mode(0o750)).unwrap();
        fs::write(here.path().join("in/odd\nname"), "").unwrap();
        let target = "t".repeat(140);
        std::os::unix::fs::symlink(&target, here.path().join("in/link")).unwrap();
        let all = parcel(&[format!("{}=to/app", here.path().join("in").display())], false);
        let mut archive = Vec::new();
        write(&all.without("nancy", &[]), &mut archive).unwrap();
        let there = unpacked(&archive);
        let at = |name: &Path| there.path().join("to/app").join(name);
        let sent = deep.join("a b").metadata().unwrap();
        let come = at(&Path::new(&"d".repeat(150)).join("a b"));
        assert_eq!(fs::read(&come).unwrap(), vec![b'x'; 100_000]);
        let come = come.metadata().unwrap();
        assert_eq!((come.mode(), come.mtime()), (sent.mode(), sent.mtime()));
        assert_eq!(fs::read(at(Path::new("odd\nname"))).unwrap(), b"");
        assert_eq!(fs::read_link(at(Path::new("link"))).unwrap(), Path::new(&target));
    }

    #[test]
    fn a_file_that_grows_is_sent_as_it_was_and_one_that_shrinks_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        fs::write(&file, "12345").unwrap();
        let read = |left| {
            let file = File::open(&file).unwrap();
            let mut text = String::new();
            Whole { file: &file, left }
                .read_to_string(&mut text)
                .map(|_| text)
        };
        assert_eq!(read(3).unwrap(), "123");
        let error = read(6).unwrap_err();
        assert!(error.to_string().contains("shorter"), "{error}");
    }

    /// Discards an archive, and calls a function while it is being written.
    struct Meanwhile<F>(F);

    impl<F: FnMut()> Write for Meanwhile<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_file_that_is_written_to_while_it_is_sent_is_named() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        fs::write(&file, vec![b'x'; 4 * BUFFER]).unwrap();
        let all = parcel(&[format!("{}=file", file.display())], false);
        let changing = || {
            let mut file = File::options().append(true).open(&file).unwrap();
            file.write_all(b"more").unwrap();
        };
        let error = write(&all.without("nancy", &[]), Meanwhile(changing)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("file: it was changed while it was sent"), "{text}");
    }

    #[test]
    fn the_holes_of_a_file_are_not_sent() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("file");
        let mut file = File::create(&path).unwrap();
        file.set_len(16 << 20).unwrap();
        file.seek(SeekFrom::Start(9 << 20)).unwrap();
        file.write_all(b"an island").unwrap();
        drop(file);
        let all = parcel(&[format!("{}=file", path.display())], false);
        let mut archive = Vec::new();
        write(&all.without("nancy", &[]), &mut archive).unwrap();
        let there = unpacked(&archive);
        let come = there.path().join("file");
        assert_eq!(fs::read(&path).unwrap(), fs::read(&come).unwrap());
        // On a file system without holes everything is sent.
        if is_sparse(&path.metadata().unwrap()) {
            assert!(archive.len() < 1 << 20 && is_sparse(&come.metadata().unwrap()));
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("file");
        fs::write(&file, "12345").unwrap();
        let all = parcel(&[format!("{}=file", file.display())], false);
        fs::remove_file(&file).unwrap();
        let error = write(&all.without("nancy", &[]), Vec::new()).unwrap_err();
        assert!(error.to_string().contains("file: No such file"), "{error}");
    }
}
