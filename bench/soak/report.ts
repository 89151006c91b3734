import type { Disturbances } from './disturbances.ts'
import type { Ledger } from './ledger.ts'
import type { Growth } from './memory.ts'
import type { Outcome } from './messages.ts'

export interface Outcomes {
  readonly ledger: Ledger
  readonly accounts: ReadonlyMap<string, number>
  /** What was found wrong; none is what it is for. */
  readonly problems: readonly string[]
  /** More lines, as they are. */
  readonly notes: readonly string[]
}

export interface Results extends Outcomes {
  readonly disturbances: Disturbances
  readonly growths: readonly Growth[]
}

export function report({ disturbances, growths, notes, ...outcomes }: Results): string {
  const { kills, reloads } = disturbances
  const count = [...reloads.values()].reduce((sum, times) => sum + times, 0)
  return outcomesReport({
    ...outcomes,
    notes: [
      `workers killed: ${kills.length}; reloads: ${count} (${[...reloads].map(([what, times]) => `${what} ${times}`).join('; ')})`,
      '',
      row(['memory', 'seconds', 'before', 'after', 'flat']),
      ...growths.map(growthRow),
      '',
      ...notes,
    ],
  })
}

/** Results by kind of request. */
export function outcomesReport({ ledger, accounts, problems, notes }: Outcomes): string {
  const lines = [
    '',
    row(['kind', ...OUTCOMES]),
    ...[...ledger.byKind]
      .toSorted()
      .map(([kind, outcomes]) => outcomeRow(kind, (outcome) => outcomes.get(outcome))),
    outcomeRow('all', (outcome) => ledger.total(outcome)),
    '',
    `lost: ${[...accounts].map(([account, times]) => `${times} by ${account}`).join(', ') || 'none that is accounted for'}`,
    ...notes,
    '',
    ...(problems.length === 0
      ? ['Nothing is wrong.']
      : [`${problems.length} WRONG:`, ...problems.slice(0, SHOWN_MAX)]),
  ]
  return `${lines.join('\n')}\n`
}

function outcomeRow(kind: string, count: (outcome: Outcome) => number | undefined): string {
  return row([kind, ...OUTCOMES.map((outcome) => String(count(outcome) ?? ''))])
}

function growthRow({ name, seconds, beforeBytes, afterBytes, isFlat }: Growth): string {
  const said = isFlat === null ? 'too short' : isFlat ? 'yes' : 'NO'
  return row([name, String(Math.round(seconds)), mebibytes(beforeBytes), mebibytes(afterBytes), said])
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`
}

function row([first, ...rest]: readonly string[]): string {
  return first!.padEnd(28) + rest.map((cell) => cell.padStart(18)).join('')
}

const OUTCOMES: readonly Outcome[] = ['right', 'failed-as-planned', 'left', 'not-begun', 'lost', 'wrong']
const SHOWN_MAX = 50
