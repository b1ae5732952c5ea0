/** Similarity of names, for errors in which the server suggests none. */

const MOST_NAMES = 5;
const LEAST_SIMILARITY = 0.5;

/** Returns the known names that resemble a name, nearest first. */
export function nearestNames(name: string, known: readonly string[]): string[] {
  return known
    .map((candidate) => ({ candidate, similarity: similarity(name, candidate) }))
    .filter((item) => item.similarity >= LEAST_SIMILARITY)
    .sort((left, right) => right.similarity - left.similarity)
    .slice(0, MOST_NAMES)
    .map((item) => item.candidate);
}

/** Returns the similarity of two names by edit distance (Levenshtein 1966), from 0 (no common letters) to 1 (equal). */
function similarity(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const substitution = row[j - 1]! + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return 1 - row[right.length]! / Math.max(left.length, right.length, 1);
}
