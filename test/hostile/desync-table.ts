import type { Case } from './desync-case.ts'
import { CHUNKS } from './desync-chunks.ts'
import { FRAMING } from './desync-framing.ts'
import { LINES } from './desync-lines.ts'
import { ROUTES } from './desync-routes.ts'

export const CASES: readonly Case[] = [...FRAMING, ...CHUNKS, ...LINES, ...ROUTES]

/** The first of each family. */
export const EXAMPLES: readonly Case[] = CASES.filter(
  ({ family }, index) => CASES[index - 1]?.family !== family,
)
