import type { Round } from './rounds.ts'

/** What was done to it, and how long it took to be well again. */
export function roundsReport(rounds: readonly Round[], allKinds: readonly string[]): string {
  const lines = [row(['disturbance', 'rounds', 'with another', 'recovered in ms', 'at most'])]
  for (const kind of allKinds) {
    const its = rounds.filter(({ kinds }) => kinds.includes(kind))
    if (its.length === 0) continue
    const times = its.map(({ recoveredMs }) => recoveredMs).toSorted((a, b) => a - b)
    const paired = its.filter(({ kinds }) => kinds.length > 1).length
    const [median, most] = [times[Math.floor(times.length / 2)], times.at(-1)]
    lines.push(row([kind, its.length, paired, median!, most!]))
  }
  return `\n${lines.join('\n')}\n`
}

function row([first, ...rest]: readonly (string | number)[]): string {
  return String(first).padEnd(28) + rest.map((cell) => String(cell).padStart(18)).join('')
}
