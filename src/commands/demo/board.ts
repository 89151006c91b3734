import { type Column, renderTable } from '../../terminal/table.ts'
import type { DemoClient } from './clients.ts'
import { type Seen, seenText } from './seen.ts'

export interface BoardRow {
  readonly client: DemoClient
  readonly isRunning: boolean
  readonly requests: number
  /** What the gate said of it last. */
  readonly seen: Seen | null
}

/** Everything that somebody sees who has started the demo. */
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
  // A link that is cut off leads nowhere: what is too long goes on in the next line, as the terminal does it.
  return [...head, '', ...[...table, '', keys].map((line) => line.slice(0, columns))]
}

const COLUMNS: readonly Column[] = [
  { title: '', align: 'right' },
  { title: 'CLIENT' },
  { title: '' },
  { title: 'REQUESTS', align: 'right' },
  { title: 'THE GATE SAYS', flexible: true },
]
