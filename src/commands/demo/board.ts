import { type Column, renderTable } from '../../terminal/table.ts'
import type { DemoClient } from './clients.ts'
import { type Seen, seenText } from './seen.ts'

export interface BoardRow {
  readonly client: DemoClient
  readonly isRunning: boolean
  readonly requests: number
  /** The latest headers of the gate. */
  readonly seen: Seen | null
}

/** The whole screen of the demo. */
export function boardLines(
  head: readonly string[],
  rows: readonly BoardRow[],
  columns: number,
): readonly string[] {
  const cells = rows.map(({ client, isRunning, requests, seen }, index) => [
    String(index + 1),
    client.name,
    client.absent ?? (isRunning ? 'runs' : 'stopped'),
    String(requests),
    seen === null ? client.about : seenText(seen),
  ])
  const table = renderTable(COLUMNS, cells, columns)
  const keys = 'Keys: 1 to 8 start and stop a client, a all of them, q or Ctrl-C ends everything.'
  // Links are not truncated, because a truncated link is useless: the terminal wraps them.
  return [...head, '', ...[...table, '', keys].map((line) => line.slice(0, columns))]
}

const COLUMNS: readonly Column[] = [
  { title: '', align: 'right' },
  { title: 'CLIENT' },
  { title: '' },
  { title: 'REQUESTS', align: 'right' },
  { title: 'THE GATE SAYS', flexible: true },
]
