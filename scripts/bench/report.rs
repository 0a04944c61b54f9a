//! Figures on standard output, each beside its goal.

/// What was printed so far.
#[derive(Debug, Default)]
pub struct Report {
    figures: usize,
    over: usize,
}

impl Report {
    /// Prints one figure. With a goal, it is the most that the figure should be.
    pub fn figure(&mut self, name: &str, value: f64, unit: &str, goal: Option<f64>) {
        let ok = goal.is_none_or(|goal| value <= goal);
        let word = match goal {
            None => "-",
            Some(_) if ok => "ok",
            Some(_) => "over",
        };
        let goal = goal.map_or("-".to_owned(), |goal| format!("{} {unit}", short(goal)));
        println!("figure {name:<56} value {:>9} {unit:<8} goal {goal:<12} {word}", short(value));
        self.figures += 1;
        self.over += usize::from(!ok);
    }

    /// Prints what somebody should know who reads the figures.
    pub fn note(&self, text: &str) {
        println!("note   {text}");
    }

    /// Prints the last line.
    pub fn end(&self) {
        println!("total  {} figures, {} over their goal", self.figures, self.over);
    }
}

/// Three digits or so; a goal stays as it was written.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// The middle of `values`; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}
