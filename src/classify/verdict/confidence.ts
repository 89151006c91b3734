/**
 * How likely it is that who has a fingerprint is this one of its owners, from what they were observed to have (Laplace's
 * rule of succession): somebody not known yet may have it as well, and counts as one of them. Observed of one alone, n
 * times: (n + 1) / (n + 2); only ever published: a half.
 */
export function confidenceOf(own: number, total: number, owners: number): number {
  return (own + 1) / (total + owners + 1)
}
