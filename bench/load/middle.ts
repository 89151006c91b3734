/** Of one round each: what keeps the processor from one keeps it from the next. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
}

/** The machine is noisy upwards only: the 25th percentile is what a request costs. */
export function quartile(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? Number.NaN
}
