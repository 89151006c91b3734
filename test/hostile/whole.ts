/** Whether all of it is tried: `npm run hostile -- FILE`. */
export const IS_WHOLE = process.env['HOSTILE'] === 'whole'

/** All of them, or where there is less time each `nth`, from another one for each `turn`, so that over the turns all are tried. */
export function shareOf<Value>(values: readonly Value[], nth: number, turn: number): readonly Value[] {
  return IS_WHOLE ? values : values.filter((_, index) => (index + turn) % nth === 0)
}
