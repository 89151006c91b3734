import { Table } from '../table.tsx'

export interface WeighedEvidence {
  readonly detail: string
  /** A natural logarithm of odds. */
  readonly weight: number
}

interface Props {
  readonly evidence: readonly WeighedEvidence[]
  /** What weights below and above zero speak for. */
  readonly sides: readonly [left: string, right: string]
  /** The weight before any evidence, and the sum of all weights. */
  readonly total?: { readonly start: number; readonly sum: number }
}

/** Each piece of evidence with its weight on a bar, to the left or to the right of the middle. */
export function EvidenceTable({ evidence, sides, total }: Props) {
  const rows: readonly WeighedEvidence[] = [
    ...(total === undefined ? [] : [{ detail: 'Before any evidence', weight: total.start }]),
    ...evidence,
    ...(total === undefined ? [] : [{ detail: 'Sum', weight: total.sum }]),
  ]
  const most = Math.max(1, ...rows.map(({ weight }) => Math.abs(weight)))
  return (
    <Table
      label="Evidence"
      rows={rows}
      keyOf={({ detail }, at) => `${at} ${detail}`}
      columns={[
        { title: 'Evidence', cell: ({ detail }) => detail },
        {
          title: `${sides[0]} ◂ ▸ ${sides[1]}`,
          cell: ({ weight }) => <Bar weight={weight} most={most} />,
        },
        { title: 'Weight', cell: ({ weight }) => weightText(weight, sides) },
      ]}
    />
  )
}

function Bar({ weight, most }: { readonly weight: number; readonly most: number }) {
  const style = { width: `${(100 * Math.abs(weight)) / most}%` }
  return (
    <span class="balance" aria-hidden="true">
      <span class="left">{weight < 0 && <span style={style} />}</span>
      <span class="right">{weight > 0 && <span style={style} />}</span>
    </span>
  )
}

/** `1.20 agent`. */
function weightText(weight: number, sides: Props['sides']): string {
  if (weight === 0) return '0'
  return `${Math.abs(weight).toFixed(2)} ${weight < 0 ? sides[0] : sides[1]}`
}

/** The odds of a sum of weights, in words. */
export function oddsText(sum: number): string {
  const odds = Math.exp(Math.abs(sum))
  return odds > 1_000 ? 'more than 1,000 to 1' : `${odds < 10 ? odds.toFixed(1) : Math.round(odds)} to 1`
}
