import { createReadStream, existsSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { type Judgement, judgeRows } from '../../src/classify/measure/evaluation.ts'
import { truthOf } from '../../src/classify/measure/truth.ts'
import { crossValidate } from '../../src/commands/fitting.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'
import { type Detector, install, LOCAL, missing, start } from './detectors.ts'
import { measure, type Result, summed } from './measure.ts'
import { tableOf } from './table.ts'

/**
 * `npm run bench:detection [-- --corpus FILE… --detector NAME=URL… --key NAME=KEY… --only NAME… --folds N --json]`:
 * detectors over recorded connections. README.md describes the protocol and the columns.
 */
const { values } = parseArgs({
  options: {
    corpus: { type: 'string', multiple: true, default: ['test/classify/recorded.jsonl'] },
    detector: { type: 'string', multiple: true, default: [] },
    key: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true },
    folds: { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
  },
})
const WHOLE = 'gatehouse, whole connections'
const HELD_OUT = 'gatehouse, held-out clients'
const keys = new Map(values.key.map(pairOf))
const rows = (await Promise.all(values.corpus.map(readRows))).flat()
const results: Result[] = []
const wanted = (name: string) => values.only?.includes(name) ?? true

if (LOCAL.some((local) => local.needs !== null && wanted(local.name))) install()
for (const local of LOCAL.filter(({ name }) => wanted(name))) {
  const why = missing(local)
  if (why !== null) {
    process.stderr.write(`${local.name}: left out: ${why}\n`)
    continue
  }
  const detector = await start(local)
  results.push(await measure(detector, rows).finally(detector.stop))
}
for (const [name, url] of values.detector.map(pairOf)) {
  const detector: Detector = { name, url, key: keys.get(name) ?? null, pid: null }
  results.push(await measure(detector, rows))
}
const knowledge = await loadKnowledge(null, null)
if (wanted(WHOLE)) results.push(inProcess(WHOLE, judgeRows(knowledge, rows)))
if (wanted(HELD_OUT))
  results.push(inProcess(HELD_OUT, crossValidate(knowledge.list, rows, Number(values.folds))))
process.stdout.write(values.json ? `${JSON.stringify(results)}\n` : tableOf(results))
process.exit()

/** What the proxy concludes from all requests of a connection together. */
function inProcess(name: string, judgements: readonly Judgement[]): Result {
  const judged = judgements
    .filter(({ row }) => truthOf(row.label) !== null)
    .map(({ row, verdict, agentProbability }) => ({
      truth: truthOf(row.label)!,
      answer: { verdict: verdict.kind, probability: agentProbability },
    }))
  const requests = judgements.reduce((sum, { row }) => sum + row.requests.length, 0)
  return { name, ...summed(judged), requests, cpuUs: null, medianUs: null }
}

async function readRows(path: string): Promise<readonly CorpusRow[]> {
  if (!existsSync(path)) throw new Error(`${path} does not exist`)
  const found: CorpusRow[] = []
  const refuse = (line: number, fault: Error) => process.stderr.write(`${path}:${line}: ${fault.message}\n`)
  for await (const { row } of readCorpus(createReadStream(path), refuse)) found.push(row)
  return found
}

function pairOf(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at < 1) throw new Error(`${text}: write NAME=VALUE`)
  return [text.slice(0, at), text.slice(at + 1)]
}
