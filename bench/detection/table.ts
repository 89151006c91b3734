import { renderTable } from '../../src/terminal/table.ts'
import { CLASSES, type Class } from '../../src/classify/known/weights.ts'
import type { Result } from './measure.ts'
import { SAID, type Said } from './protocol.ts'

/** The verdicts that are right for a class. */
const RIGHT: Readonly<Record<Class, readonly Said[]>> = {
  agent: ['agent', 'bot'],
  automation: ['automation', 'bot'],
  human: ['human'],
}
const NAMES: Readonly<Record<Class, string>> = { agent: 'agents', automation: 'tools', human: 'people' }

/** Three lines for each detector, one for each class of clients. */
export function tableOf(results: readonly Result[]): string {
  const titles = ['detector', 'clients', 'n', ...SAID, 'right', 'Brier', 'ECE', 'CPU µs', 'median µs']
  const columns = titles.map((title, i) => (i < 2 ? { title } : { title, align: 'right' as const }))
  const rows = results.flatMap((result) => CLASSES.map((name, i) => rowOf(result, name, i === 0)))
  return `${renderTable(columns, rows, Number.POSITIVE_INFINITY).join('\n')}\n`
}

function rowOf({ name, confusion, ...result }: Result, truth: Class, isFirst: boolean): string[] {
  const counts = confusion[truth]
  const n = SAID.reduce((sum, said) => sum + counts[said], 0)
  const right = RIGHT[truth].reduce((sum, said) => sum + counts[said], 0)
  const measured = [
    result.brier?.toFixed(3) ?? '',
    result.ece?.toFixed(3) ?? '',
    result.cpuUs?.toFixed(0) ?? '',
    result.medianUs?.toFixed(0) ?? '',
  ]
  return [
    isFirst ? name : '',
    NAMES[truth],
    String(n),
    ...SAID.map((said) => String(counts[said])),
    n === 0 ? '' : `${((100 * right) / n).toFixed(1)} %`,
    ...(isFirst ? measured : measured.map(() => '')),
  ]
}
