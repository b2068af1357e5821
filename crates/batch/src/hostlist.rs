//! Slurm's notation for many nodes: `a-[1-2,05],login` is a-1, a-2, a-05 and login.

use crate::MAX_NODES;

/// Returns the names that a list stands for, in its order; `None` if it is not understood, or has more than
/// [`MAX_NODES`].
pub fn expand(list: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for part in parts(list)? {
        expand_part(part, &mut names)?;
    }
    Some(names)
}

/// Splits at commas that are outside brackets.
fn parts(list: &str) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut is_inside) = (Vec::new(), 0, false);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'[' if is_inside => return None,
            b'[' => is_inside = true,
            b']' if !is_inside => return None,
            b']' => is_inside = false,
            b',' if !is_inside => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    (!is_inside).then_some(parts)
}

/// One word with any number of brackets.
fn expand_part(part: &str, names: &mut Vec<String>) -> Option<()> {
    if part.is_empty() {
        return None;
    }
    let mut found = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after.split_once(']')?;
        let numbers = numbers(ranges)?;
        if found.len().checked_mul(numbers.len())? > MAX_NODES {
            return None;
        }
        let each = |name: &String| -> Vec<String> {
            let one = |number: &String| format!("{name}{before}{number}");
            numbers.iter().map(one).collect()
        };
        found = found.iter().flat_map(each).collect();
        rest = after;
    }
    found.iter_mut().for_each(|name| name.push_str(rest));
    names.extend(found);
    (names.len() <= MAX_NODES).then_some(())
}

/// `1-3,05` with the width of each range's first number.
fn numbers(ranges: &str) -> Option<Vec<String>> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(first) || !is_number(last) {
            return None;
        }
        let width = first.len();
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last.checked_sub(first)? >= MAX_NODES {
            return None;
        }
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    (numbers.len() <= MAX_NODES).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_expanded_in_their_order() {
        let cases = [
            ("a-1", "a-1"),
            ("a-[1-2,05],login", "a-1 a-2 a-05 login"),
            ("r[08-11]", "r08 r09 r10 r11"),
            ("r[1-2]c[0-1]x", "r1c0x r1c1x r2c0x r2c1x"),
        ];
        for (list, names) in cases {
            assert_eq!(expand(list).unwrap().join(" "), names, "{list}");
        }
    }

    #[test]
    fn what_is_no_list_is_none_and_none_is_without_bound() {
        for list in [
            "", "a,", "a[", "a]", "a[1", "a[x]", "a[2-1]", "a[[1]]", "a[1-]", "a[-3]",
        ] {
            assert_eq!(expand(list), None, "{list}");
        }
        assert_eq!(expand("a[1-10000]").unwrap().len(), MAX_NODES);
        assert_eq!(expand("a[0-10000]"), None);
        assert_eq!(expand("a[1-999]b[1-999]"), None);
        assert_eq!(expand("a[1-18446744073709551615]"), None);
    }
}
