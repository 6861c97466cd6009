//! What apt's files and answers say, as far as the compiler's packages need it.

use std::collections::{BTreeMap, BTreeSet};

/// Debian's archive, if the system names no mirror.
pub const ARCHIVE: &str = "http://deb.debian.org/debian";

/// The Debian mirrors in a file of one-line sources.
pub fn mirrors_in_list(text: &str) -> Vec<String> {
    text.lines().filter_map(mirror_of_line).collect()
}

/// `deb [option=value ...] <URI> <suite> <component>...`
fn mirror_of_line(line: &str) -> Option<String> {
    let line = line.trim().strip_prefix("deb")?;
    let (options, rest) = match line.trim_start().strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", line.strip_prefix([' ', '\t'])?),
    };
    let mut words = rest.split_whitespace();
    let (uri, _suite) = (words.next()?, words.next()?);
    let key = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="));
    is_debian(uri, words, key).then(|| uri.to_owned())
}

/// The Debian mirrors in a file of deb822 sources.
pub fn mirrors_in_stanzas(text: &str) -> Vec<String> {
    let mut stanzas = vec![BTreeMap::<String, String>::new()];
    let mut field = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            stanzas.push(BTreeMap::new());
            continue;
        }
        let Some(stanza) = stanzas.last_mut() else {
            continue;
        };
        let value = if line.starts_with([' ', '\t']) {
            line
        } else if let Some((name, value)) = line.split_once(':') {
            field = name.to_lowercase();
            value
        } else {
            continue;
        };
        let known = stanza.entry(field.clone()).or_default();
        known.push(' ');
        known.push_str(value.trim());
    }
    stanzas.iter().flat_map(mirrors_of_stanza).collect()
}

fn mirrors_of_stanza(stanza: &BTreeMap<String, String>) -> Vec<String> {
    let value = |name: &str| stanza.get(name).map_or("", |value| value.trim());
    let words = |name: &str| value(name).split_whitespace();
    let enabled = !["no", "false", "0", "off"].contains(&value("enabled"));
    if !enabled || !words("types").any(|kind| kind == "deb") {
        return Vec::new();
    }
    let key = stanza.get("signed-by").map(|key| key.trim());
    words("uris")
        .filter(|uri| is_debian(uri, words("components"), key))
        .map(str::to_owned)
        .collect()
}

/// Whether a source is a mirror of Debian's archive. Others have such an address too, but their own
/// components or key.
fn is_debian<'a>(
    uri: &str,
    mut components: impl Iterator<Item = &'a str>,
    key: Option<&str>,
) -> bool {
    let path = uri
        .strip_prefix("http://")
        .or_else(|| uri.strip_prefix("https://"));
    path.is_some_and(|path| path.trim_end_matches('/').ends_with("/debian"))
        && components.any(|component| component == "main")
        && key.is_none_or(|key| key.contains("debian-archive-"))
}

/// The packages that `apt-cache depends --recurse` lists, each with what it depends on. Of
/// alternatives, the last counts: packages of libraries have none.
pub fn dependencies(answer: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut packages = BTreeMap::<_, Vec<_>>::new();
    let mut package = "";
    for line in answer.lines() {
        if !line.starts_with([' ', '<']) {
            package = line.trim();
            packages.entry(package).or_default();
            continue;
        }
        let needed = ["Depends: ", "PreDepends: "];
        let needed = needed
            .iter()
            .find_map(|kind| line.trim_start().strip_prefix(kind));
        if let Some(needed) = needed {
            packages.entry(package).or_default().push(needed);
        }
    }
    packages
}

/// The packages with the shared libraries that they load, sorted.
pub fn with_libraries<'a>(
    packages: &[&'a str],
    dependencies: &BTreeMap<&'a str, Vec<&'a str>>,
) -> Vec<&'a str> {
    let mut found = BTreeSet::from_iter(packages.iter().copied());
    let mut open = packages.to_vec();
    while let Some(package) = open.pop() {
        for &needed in dependencies.get(package).into_iter().flatten() {
            if is_library(needed) && found.insert(needed) {
                open.push(needed);
            }
        }
    }
    found.into_iter().collect()
}

/// Whether a package has shared libraries, by its name. A compiler of C, which rustc's package
/// depends on too, is the machine's own.
fn is_library(package: &str) -> bool {
    (package.starts_with("lib") && !package.starts_with("libc-") && !package.ends_with("-dev"))
        || package == "zlib1g"
}

/// The version in what `apt-cache show` prints; of several, the first.
pub fn version_in(answer: &str) -> Option<&str> {
    answer
        .lines()
        .find_map(|line| line.strip_prefix("Version: "))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_read_from_lines() {
        let text = "# deb http://old.example/debian bookworm main\n\
                    deb-src http://source.example/debian bookworm main\n\
                    deb [signed-by=/k/docker.gpg] https://download.docker.com/linux/debian bookworm stable\n\
                    deb [signed-by=/k/other.gpg arch=amd64] https://other.example/debian bookworm main\n\
                    deb http://security.debian.org/debian-security bookworm-security main\n\
                    deb http://archive.ubuntu.com/ubuntu noble main\n\
                    deb [ arch=amd64 ] https://ftp.example/pub/debian/ bookworm contrib main\n\
                    deb\thttp://plain.example/debian bookworm main\n\
                    deb cdrom:[Debian]/ bookworm main\n";
        assert_eq!(
            mirrors_in_list(text),
            [
                "https://ftp.example/pub/debian/",
                "http://plain.example/debian"
            ]
        );
        assert!(mirrors_in_list("").is_empty());
    }

    #[test]
    fn the_mirror_is_read_from_stanzas() {
        let text = "Types: deb\n\
                    # http://snapshot.debian.org/archive/debian/20250520T000000Z\n\
                    URIs: http://deb.example/debian\n\
                    \x20 http://second.example/debian\n\
                    Suites: bookworm bookworm-updates\n\
                    Components: main contrib\n\
                    Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\
                    \n\
                    Types: deb\n\
                    URIs: http://deb.example/debian-security\n\
                    Suites: bookworm-security\n\
                    Components: main\n\
                    \n\
                    Enabled: no\n\
                    Types: deb\n\
                    URIs: http://off.example/debian\n\
                    Suites: sid\n\
                    Components: main\n\
                    \n\
                    Types: deb\n\
                    URIs: https://deb.nodesource.com/node_20.x\n\
                    Suites: nodistro\n\
                    Components: main\n\
                    \n\
                    Types: deb\n\
                    URIs: https://inline.example/debian\n\
                    Suites: sid\n\
                    Components: main\n\
                    Signed-By:\n\
                    \x20-----BEGIN PGP PUBLIC KEY BLOCK-----\n\
                    \x20.\n\
                    \n\
                    types: deb-src\n\
                    URIs: http://source.example/debian\n\
                    Suites: sid\n\
                    Components: main\n";
        assert_eq!(
            mirrors_in_stanzas(text),
            ["http://deb.example/debian", "http://second.example/debian"]
        );
        assert!(mirrors_in_stanzas("").is_empty());
    }

    /// As unstable's apt answers, shortened.
    const ANSWER: &str = "rustc\n  Depends: libc6\n  Depends: libstd-rust-dev\n  Depends: gcc\n  \
                          Depends: <libc-dev>\n    libc6-dev\n  Depends: binutils\n\
                          libc6\n  PreDepends: libgcc-s1\n  Depends: libc-gconv-modules-extra\n\
                          libstd-rust-dev\n  Depends: libstd-rust-1.97\n\
                          gcc\n  Depends: libfound-by-gcc1\n\
                          <libc-dev>\n\
                          libstd-rust-1.97\n  Depends: libllvm22\n \
                          |Depends: libone1\n  Depends: libother1\n\
                          libllvm22\n  Depends: zlib1g\n  Depends: libc6\n\
                          zlib1g\n";

    #[test]
    fn shared_libraries_are_found_through_their_dependencies() {
        let dependencies = dependencies(ANSWER);
        assert_eq!(dependencies["libc6"][0], "libgcc-s1");
        assert_eq!(
            with_libraries(&["rustc", "libstd-rust-dev"], &dependencies),
            [
                "libc6",
                "libgcc-s1",
                "libllvm22",
                "libother1",
                "libstd-rust-1.97",
                "libstd-rust-dev",
                "rustc",
                "zlib1g",
            ]
        );
    }

    #[test]
    fn the_packages_version_is_read() {
        let answer = "Package: rustc\nVersion: 1.97.1+dfsg1-1\nInstalled-Size: 13432\n\n\
                      Package: rustc\nVersion: 1.85.0+dfsg3-1\n";
        assert_eq!(version_in(answer), Some("1.97.1+dfsg1-1"));
        assert_eq!(version_in("N: Unable to locate package rustc"), None);
    }
}
