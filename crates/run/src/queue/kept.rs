//! The output of a submitted job: it is on the disk, and limited to its first and its last parts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of a part.
const PART: u64 = 4 * 1024 * 1024;

/// How many parts are kept of the beginning, and of the end.
const FIRST: u64 = 4;
const LAST: u64 = 4;

fn part(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("output-{number}"))
}

fn parts(directory: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("output-"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Writes the parts.
pub struct Writer {
    directory: PathBuf,
    part_bytes: u64,
    /// The number of the next part.
    next: u64,
    file: Option<File>,
    length: u64,
    /// How many bytes could not be written, and why the first of them could not.
    pub lost: Option<(u64, io::Error)>,
}

impl Writer {
    /// Begins a new part after the last one that exists.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn of(directory: &Path) -> io::Result<Writer> {
        Ok(Writer {
            directory: directory.to_owned(),
            part_bytes: PART,
            next: parts(directory)?.last().map_or(0, |last| last + 1),
            file: None,
            length: 0,
            lost: None,
        })
    }

    /// Continues the last part that exists.
    ///
    /// # Errors
    /// The directory or the part cannot be read.
    pub fn resume(directory: &Path) -> io::Result<Writer> {
        let mut writer = Writer::of(directory)?;
        if let Some(last) = writer.next.checked_sub(1) {
            let file = OpenOptions::new().append(true).open(part(directory, last))?;
            writer.length = file.metadata()?.len();
            writer.file = Some(file);
        }
        Ok(writer)
    }

    /// Adds bytes. Those that a full disk does not accept are counted, and the program that writes goes on.
    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.add_some(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let count = bytes.len() as u64;
                    self.lost.get_or_insert((0, error)).0 += count;
                    return;
                }
            }
        }
    }

    /// Frees the disk space of the last part: the record of a job's end must find room.
    pub fn make_room(&mut self) {
        self.file = None;
        let bytes =
            |number: &u64| fs::metadata(part(&self.directory, *number)).map_or(0, |found| found.len());
        let numbers = parts(&self.directory).unwrap_or_default();
        let Some(last) = numbers.iter().rev().find(|number| bytes(number) > 0) else {
            return;
        };
        let bytes = bytes(last);
        if fs::remove_file(part(&self.directory, *last)).is_ok() {
            let full = io::Error::from(ErrorKind::StorageFull);
            self.lost.get_or_insert((0, full)).0 += bytes;
        }
    }

    fn add_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.length >= self.part_bytes {
            (self.file, self.length) = (None, 0);
        }
        if self.file.is_none() {
            self.begin_part()?;
        }
        let room = usize::try_from(self.part_bytes - self.length).unwrap_or(usize::MAX);
        let Some(file) = &mut self.file else {
            return Err(ErrorKind::NotFound.into());
        };
        let count = file.write(&bytes[..bytes.len().min(room)])?;
        if count == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        self.length += count as u64;
        Ok(count)
    }

    fn begin_part(&mut self) -> io::Result<()> {
        let path = part(&self.directory, self.next);
        let mut options = OpenOptions::new();
        self.file = Some(options.write(true).create_new(true).mode(0o600).open(path)?);
        if let Some(old) = self.next.checked_sub(LAST).filter(|old| *old >= FIRST) {
            let _ = fs::remove_file(part(&self.directory, old));
        }
        self.next += 1;
        Ok(())
    }
}

/// Reads the parts, even while they are being written.
pub struct Reader {
    directory: PathBuf,
    /// The part that is being read, and how much of it was read.
    at: Option<(u64, u64)>,
    /// Whether the rest of that part is no longer kept.
    is_cut: bool,
}

impl Reader {
    /// Begins with the first part.
    pub fn of(directory: &Path) -> Reader {
        Reader {
            directory: directory.to_owned(),
            at: None,
            is_cut: false,
        }
    }

    /// Copies everything that has come since the last call, and says where parts are left out.
    ///
    /// # Errors
    /// Those of reading and of `sink`.
    pub fn copy(&mut self, sink: &mut impl Write) -> io::Result<()> {
        loop {
            // The list must come first: a part that has a successor in it is complete.
            let numbers = parts(&self.directory)?;
            if let Some((number, read)) = self.at {
                match self.copy_part(number, read, sink)? {
                    Some(copied) => self.at = Some((number, read + copied)),
                    None => self.is_cut = true,
                }
            }
            let next = match self.at {
                Some((at, _)) => numbers.iter().copied().find(|number| *number > at),
                None => numbers.first().copied(),
            };
            let Some(next) = next else { return Ok(()) };
            let expected = self.at.map_or(0, |(at, _)| at + 1);
            if next > expected || self.is_cut {
                writeln!(sink, "\n[causeway: output was not kept here]")?;
            }
            self.is_cut = false;
            self.at = Some((next, 0));
        }
    }

    fn copy_part(&self, number: u64, read: u64, sink: &mut impl Write) -> io::Result<Option<u64>> {
        let mut file = match File::open(part(&self.directory, number)) {
            // The part is no longer kept.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        file.seek(SeekFrom::Start(read))?;
        let mut copied = 0;
        let mut bytes = vec![0; 64 * 1024];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => return Ok(Some(copied)),
                Ok(count) => {
                    sink.write_all(&bytes[..count])?;
                    copied += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(directory: &Path) -> Writer {
        Writer {
            part_bytes: 10,
            ..Writer::of(directory).unwrap()
        }
    }

    fn read(reader: &mut Reader) -> String {
        let mut bytes = Vec::new();
        reader.copy(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_short_is_kept_whole_and_read_as_it_grows() {
        let directory = tempfile::tempdir().unwrap();
        let mut reader = Reader::of(directory.path());
        assert_eq!(read(&mut reader), "");
        let mut first = writer(directory.path());
        first.add(b"one two three ");
        assert_eq!(read(&mut reader), "one two three ");
        assert_eq!(read(&mut reader), "");
        first.add(b"four");
        assert_eq!(read(&mut reader), "four");
        // Another process continues the output.
        writer(directory.path()).add(b" five");
        assert_eq!(read(&mut reader), " five");
        assert_eq!(read(&mut Reader::of(directory.path())), "one two three four five");
    }

    #[test]
    fn of_what_is_long_the_beginning_and_the_end_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(directory.path());
        let mut early = Reader::of(directory.path());
        for number in 0..20 {
            writer.add(format!("part {number:03}\n\n").as_bytes());
            if number == 5 {
                assert!(read(&mut early).ends_with("part 005\n\n"));
            }
        }
        assert_eq!(parts(directory.path()).unwrap(), [0, 1, 2, 3, 16, 17, 18, 19]);
        let all = read(&mut Reader::of(directory.path()));
        assert!(
            all.contains("part 003") && all.contains("not kept") && all.contains("part 016"),
            "{all}"
        );
        assert!(!all.contains("part 004") && !all.contains("part 015"), "{all}");
        // A reader that follows misses what was removed before it was read.
        let rest = read(&mut early);
        assert!(
            rest.contains("not kept") && rest.ends_with("part 019\n\n"),
            "{rest}"
        );
    }

    #[test]
    fn what_the_disk_does_not_take_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = writer(directory.path());
        writer.add(b"12345");
        fs::remove_dir_all(directory.path()).unwrap();
        writer.add(b"67890");
        writer.add(b"abc");
        assert_eq!(writer.lost.as_ref().map(|lost| lost.0), Some(3));
    }
}
