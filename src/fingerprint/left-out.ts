import { EXT_ALPN, EXT_SERVER_NAME } from '../wire/client-hello.ts'
import { isGrease } from './grease.ts'

/**
 * The values to leave out of a list, as a set of marks. A table is used because a function passed in for each
 * list is not inlined and would make up half of a fingerprint's cost.
 */
export type LeftOut = number

export const GREASE: LeftOut = 1
/** SNI and ALPN, which another part of JA4 shows. */
export const SHOWN_ELSEWHERE: LeftOut = 2
/** Extensions that may differ between two connections of the same client. */
export const FLEETING: LeftOut = 4

export function isLeftOut(value: number, leftOut: LeftOut): boolean {
  return (MARKS[value]! & leftOut) !== 0
}

export function countWithout(values: readonly number[], leftOut: LeftOut): number {
  let count = 0
  for (let i = 0; i < values.length; i++) if ((MARKS[values[i]!]! & leftOut) === 0) count++
  return count
}

export const PRE_SHARED_KEY = 0x0029
export const EARLY_DATA = 0x002a
const PADDING = 0x0015 // its presence depends on the size of the hello
const SESSION_TICKET = 0x0023 // some clients omit it when they offer a pre-shared key
const COOKIE = 0x002c // echoed in the hello after a HelloRetryRequest

const MARKS = tableOfMarks()

function tableOfMarks(): Uint8Array {
  const marks = new Uint8Array(0x1_0000)
  for (let value = 0; value < marks.length; value++) if (isGrease(value)) marks[value] = GREASE
  for (const type of [EXT_SERVER_NAME, EXT_ALPN]) marks[type] = SHOWN_ELSEWHERE
  for (const type of [PADDING, SESSION_TICKET, PRE_SHARED_KEY, EARLY_DATA, COOKIE]) marks[type] = FLEETING
  return marks
}
