/**
 * The probability that a client with this fingerprint is this one of its owners, from observations (Laplace's
 * rule of succession). An owner that is not known yet counts as one more owner. If only one owner was
 * observed, n times: (n + 1) / (n + 2). If the fingerprint was only published: 1/2.
 */
export function confidenceOf(own: number, total: number, owners: number): number {
  return (own + 1) / (total + owners + 1)
}
