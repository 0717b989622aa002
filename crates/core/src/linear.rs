//! Small linear problems: what the fits of models need.
//!
//! All of them come down to one symmetric matrix, the products of a few columns with each other, so that this is all
//! there is. A first build had to wait for a library of linear algebra; tests compare with one.

use std::ops::{Index, IndexMut};

/// The sum of the products of two vectors' elements.
///
/// Fits whose parameters the samples hardly tell end elsewhere if the last digit is rounded otherwise: in which order the
/// products are added is part of every result.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    // Eight sums that do not wait for each other, as a processor likes it.
    let (ones, one) = one.as_chunks::<8>();
    let (others, other) = other.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (one, other) in ones.iter().zip(others) {
        for (sum, (one, other)) in sums.iter_mut().zip(one.iter().zip(other)) {
            *sum += one * other;
        }
    }
    let (low, high) = (&sums[..4], &sums[4..]);
    let sum = low.iter().zip(high).fold(0.0, |sum, (low, high)| sum + (low + high));
    one.iter().zip(other).fold(sum, |sum, (one, other)| sum + one * other)
}

/// What is left of a number after the products of two vectors' elements.
fn without(number: f64, one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).fold(number, |rest, (one, other)| rest - one * other)
}

/// The square of a vector's length.
pub(crate) fn norm_squared(vector: &[f64]) -> f64 {
    dot(vector, vector)
}

/// A symmetric matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Symmetric {
    size: usize,
    /// Both halves, row by row.
    elements: Vec<f64>,
}

/// In which directions a symmetric matrix only stretches, and by how much.
#[derive(Clone, Debug)]
pub(crate) struct Eigen {
    /// The eigenvalues, in no particular order.
    pub(crate) values: Vec<f64>,
    /// The eigenvector to each, of length one.
    pub(crate) vectors: Vec<Vec<f64>>,
}

impl Symmetric {
    /// A matrix with this value on its diagonal.
    pub(crate) fn diagonal(size: usize, value: f64) -> Self {
        let mut matrix = Symmetric { size, elements: vec![0.0; size * size] };
        for place in 0..size {
            matrix[(place, place)] = value;
        }
        matrix
    }

    /// The products of columns with each other.
    pub(crate) fn products(columns: &[Vec<f64>]) -> Self {
        let mut matrix = Symmetric::diagonal(columns.len(), 0.0);
        for (row, one) in columns.iter().enumerate() {
            for (column, other) in columns[..=row].iter().enumerate() {
                matrix[(row, column)] = dot(one, other);
                matrix[(column, row)] = matrix[(row, column)];
            }
        }
        matrix
    }

    /// How many rows it has.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.elements[row * self.size..][..self.size]
    }

    /// The matrix times a vector.
    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        let product = |row| self.row(row).iter().zip(vector).map(|(one, other)| one * other).sum();
        (0..self.size).map(product).collect()
    }

    /// Subtracts the products of a vector's elements with each other, divided.
    pub(crate) fn subtract_products(&mut self, vector: &[f64], divisor: f64) {
        for (row, one) in vector.iter().enumerate() {
            for (column, other) in vector.iter().enumerate() {
                self[(row, column)] -= one * other / divisor;
            }
        }
    }

    /// The vector that the matrix turns into this one, by Cholesky's factors; `None` if the matrix is not positive
    /// definite, as far as rounding lets one see.
    pub(crate) fn solve(&self, wanted: &[f64]) -> Option<Vec<f64>> {
        // The lower half times itself turned over is the matrix.
        let mut lower = self.clone();
        for row in 0..self.size {
            for column in 0..=row {
                let (one, other) = (&lower.row(row)[..column], &lower.row(column)[..column]);
                let rest = without(self[(row, column)], one, other);
                lower[(row, column)] = if row > column {
                    rest / lower[(column, column)]
                } else if rest > 0.0 {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
        }
        let mut solution = wanted.to_vec();
        for row in 0..self.size {
            let rest = without(solution[row], &lower.row(row)[..row], &solution[..row]);
            solution[row] = rest / lower[(row, row)];
        }
        for row in (0..self.size).rev() {
            let below = row + 1..self.size;
            let known: f64 = below.map(|below| lower[(below, row)] * solution[below]).sum();
            solution[row] = (solution[row] - known) / lower[(row, row)];
        }
        Some(solution)
    }

    /// Its eigenvalues and eigenvectors, by Jacobi's rotations: each takes one element beside the diagonal away, and
    /// what is left of the others shrinks.
    pub(crate) fn eigen(&self) -> Eigen {
        /// Where to stop in any case: a handful is enough.
        const MOST_SWEEPS: usize = 50;
        let mut rest = self.clone();
        let unit =
            |place| (0..self.size).map(|other| f64::from(u8::from(other == place))).collect();
        let mut vectors: Vec<Vec<f64>> = (0..self.size).map(unit).collect();
        let negligible = f64::EPSILON * f64::EPSILON * norm_squared(&self.elements);
        for _ in 0..MOST_SWEEPS {
            let pairs = || (0..self.size).flat_map(|low| (0..low).map(move |high| (low, high)));
            if pairs().map(|pair| rest[pair] * rest[pair]).sum::<f64>() <= negligible {
                break;
            }
            for (one, other) in pairs() {
                rest.rotate(one, other, &mut vectors);
            }
        }
        Eigen { values: (0..self.size).map(|place| rest[(place, place)]).collect(), vectors }
    }

    /// Turns two directions into each other by the angle that leaves nothing between them.
    fn rotate(&mut self, one: usize, other: usize, vectors: &mut [Vec<f64>]) {
        let between = self[(one, other)];
        if between == 0.0 {
            return;
        }
        let slope = (self[(other, other)] - self[(one, one)]) / (2.0 * between);
        let tangent = slope.signum() / (slope.abs() + (1.0 + slope * slope).sqrt());
        let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
        let sine = tangent * cosine;
        let turned = |a: f64, b: f64| (cosine * a - sine * b, sine * a + cosine * b);
        for place in 0..self.size {
            (self[(place, one)], self[(place, other)]) =
                turned(self[(place, one)], self[(place, other)]);
            (vectors[one][place], vectors[other][place]) =
                turned(vectors[one][place], vectors[other][place]);
        }
        for place in 0..self.size {
            (self[(one, place)], self[(other, place)]) =
                turned(self[(one, place)], self[(other, place)]);
        }
        (self[(one, other)], self[(other, one)]) = (0.0, 0.0);
    }
}

impl Index<(usize, usize)> for Symmetric {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.elements[row * self.size + column]
    }
}

/// A change of one half also changes the other.
impl IndexMut<(usize, usize)> for Symmetric {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.elements[row * self.size + column]
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    use super::*;

    /// A few columns of the same length, and a vector with an element for each.
    fn problem() -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>)> {
        (1..8_usize, 1..12_usize).prop_flat_map(|(columns, rows)| {
            let vector = |length| prop::collection::vec(-3.0..3.0_f64, length);
            (prop::collection::vec(vector(rows), columns), vector(columns))
        })
    }

    fn as_a_library_has_it(matrix: &Symmetric) -> DMatrix<f64> {
        DMatrix::from_row_slice(matrix.size, matrix.size, &matrix.elements)
    }

    proptest! {
        #[test]
        fn products_and_solutions_are_those_of_a_library((columns, wanted) in problem()) {
            let mut matrix = Symmetric::products(&columns);
            let joined = DMatrix::from_columns(&columns.iter().cloned().map(DVector::from_vec).collect::<Vec<_>>());
            prop_assert!((joined.tr_mul(&joined) - as_a_library_has_it(&matrix)).norm() < 1e-10);
            // However few rows there are, there is one answer now.
            for place in 0..matrix.size() {
                matrix[(place, place)] += 0.1;
            }
            let theirs = as_a_library_has_it(&matrix).cholesky().unwrap().solve(&DVector::from_vec(wanted.clone()));
            let ours = matrix.solve(&wanted).unwrap();
            prop_assert!((theirs - DVector::from_vec(ours.clone())).norm() < 1e-8);
            let again = DVector::from_vec(matrix.times(&ours));
            prop_assert!((again - DVector::from_vec(wanted)).norm() < 1e-8);
        }

        #[test]
        fn eigenvalues_are_those_of_a_library((columns, _) in problem()) {
            let matrix = Symmetric::products(&columns);
            let Eigen { values, vectors } = matrix.eigen();
            for (value, vector) in values.iter().zip(&vectors) {
                prop_assert!((norm_squared(vector) - 1.0).abs() < 1e-12);
                let off = matrix.times(vector).iter().zip(vector).map(|(a, b)| (a - value * b).abs()).fold(0.0, f64::max);
                prop_assert!(off < 1e-11, "{off}");
            }
            let sorted = |mut values: Vec<f64>| {
                values.sort_unstable_by(f64::total_cmp);
                values
            };
            let theirs = as_a_library_has_it(&matrix).symmetric_eigenvalues();
            let pairs = sorted(values).into_iter().zip(sorted(theirs.iter().copied().collect()));
            for (ours, theirs) in pairs {
                prop_assert!((ours - theirs).abs() < 1e-10, "{ours} {theirs}");
            }
        }

        #[test]
        fn what_a_vector_explains_is_subtracted((columns, vector) in problem()) {
            let mut matrix = Symmetric::products(&columns);
            let column = DVector::from_vec(vector.clone());
            let theirs = as_a_library_has_it(&matrix) - &column * column.transpose() / 2.5;
            matrix.subtract_products(&vector, 2.5);
            prop_assert!((theirs - as_a_library_has_it(&matrix)).norm() < 1e-12);
        }
    }

    #[test]
    fn what_has_no_answer_gets_none() {
        // Two columns that are the same, but for a sign.
        let matrix = Symmetric::products(&[vec![1.0, 2.0], vec![-1.0, -2.0]]);
        assert_eq!(matrix.solve(&[1.0, 0.0]), None);
        assert_eq!(Symmetric::diagonal(2, -1.0).solve(&[1.0, 1.0]), None);
        assert_eq!(Symmetric::diagonal(1, f64::NAN).solve(&[1.0]), None);
    }
}
