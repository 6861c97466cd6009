//! The part of the address behind `?`: `example=city&count=1000`.

/// Names and values, in order. A name without `=` has the value "".
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The page's own.
    #[cfg(target_arch = "wasm32")]
    pub fn of_page() -> Self {
        let window = web_sys::window();
        let search = window.and_then(|window| window.location().search().ok());
        Self::parse(search.unwrap_or_default().trim_start_matches('?'))
    }

    fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(
            pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }

    fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// The example's name.
    pub fn example(&self) -> &str {
        self.value("example").unwrap_or_default()
    }

    /// A number, if it is there.
    pub fn number(&self, name: &str) -> Result<Option<u32>, String> {
        let parse = |text: &str| {
            let number = text.parse();
            number.map_err(|error| format!("{name}={text}: {error}"))
        };
        self.value(name).map(parse).transpose()
    }

    /// All names but these, as flags of a command line.
    pub fn flags(&self, without: &[&str]) -> Vec<String> {
        let pairs = self.0.iter();
        let pairs = pairs.filter(|(name, _)| !without.contains(&name.as_str()));
        pairs
            .map(|(name, value)| match value.as_str() {
                "" => format!("--{name}"),
                _ => format!("--{name}={value}"),
            })
            .collect()
    }
}
