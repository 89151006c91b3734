import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { type Evaluation, evaluate, judgeRows } from '../../src/classify/measure/evaluation.ts'
import { readCorpus } from '../../src/commands/record/corpus-file.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

/**
 * Below these the verdicts are worse than they have been: shares of a label's connections, so little less than what was
 * measured that one more misjudged connection shows. A change that betters one may raise it.
 */
interface Floors {
  readonly people: {
    readonly calledAgentMax: number
    readonly calledHumanMin: number
  }
  /** LLM SDKs, orchestrators and MCP clients together. */
  readonly programs: { readonly calledAgentMin: number }
  readonly libraries: { readonly calledEitherMin: number; readonly calledAgentMax: number }
  readonly crawlers: { readonly calledAgentMin: number }
  readonly imitators: { readonly flaggedMin: number; readonly calledHumanMax: number }
  /** Of those agents but browsers that say their name anywhere. */
  readonly namedMin: number
  /** Automated browsers that show what no recorded person does. */
  readonly marked: { readonly calledAgentMin: number }
  readonly eceMax: number
}

export const RECORDED = 'test/classify/recorded.jsonl'

export const KNOWLEDGE = await loadKnowledge(null, null)

export async function judged(paths: readonly string[]): Promise<Evaluation> {
  return evaluate(judgeRows(KNOWLEDGE, await rowsOf(paths)), 0)
}

export async function rowsOf(paths: readonly string[]): Promise<readonly CorpusRow[]> {
  const rows: CorpusRow[] = []
  for (const path of paths) {
    const found = readCorpus(createReadStream(path), (number, fault) => {
      throw new Error(`${path}:${number}: ${fault.message}`)
    })
    for await (const { row } of found) rows.push(row)
  }
  return rows
}

export function assertFloors(evaluation: Evaluation, floors: Floors): void {
  const people = counts(evaluation, 'human-browser')
  const programs = counts(evaluation, 'llm-sdk', 'orchestrator', 'mcp-client')
  const libraries = counts(evaluation, 'http-library')
  const crawlers = counts(evaluation, 'crawler')
  const imitators = counts(evaluation, 'spoofed-browser')
  const selfNaming = counts(evaluation, 'llm-sdk', 'orchestrator', 'mcp-client', 'crawler')
  const automated = counts(evaluation, 'browser-agent')
  const either = (libraries.automation + libraries.agent) / libraries.n
  const measured = {
    people: {
      calledAgentMax: (people.agent + people.automation) / people.n,
      calledHumanMin: people.human / people.n,
    },
    programs: { calledAgentMin: programs.agent / programs.n },
    libraries: { calledEitherMin: either, calledAgentMax: libraries.agent / libraries.n },
    crawlers: { calledAgentMin: crawlers.agent / crawlers.n },
    imitators: {
      flaggedMin: imitators.spoof_flagged / imitators.n,
      calledHumanMax: imitators.human / imitators.n,
    },
    namedMin: selfNaming.self_named_right / selfNaming.self_named,
    marked: { calledAgentMin: automated.marked_agent / automated.marked },
    eceMax: evaluation.ece,
  }
  const said = JSON.stringify(measured)
  assert.ok(people.n > 0 && programs.n > 0 && libraries.n > 0 && imitators.n > 0)
  assert.ok(selfNaming.self_named > 0 && automated.marked > 0)
  assert.ok(measured.people.calledAgentMax <= floors.people.calledAgentMax, said)
  assert.ok(measured.people.calledHumanMin >= floors.people.calledHumanMin, said)
  assert.ok(measured.programs.calledAgentMin >= floors.programs.calledAgentMin, said)
  assert.ok(measured.libraries.calledEitherMin >= floors.libraries.calledEitherMin, said)
  assert.ok(measured.libraries.calledAgentMax <= floors.libraries.calledAgentMax, said)
  assert.ok(measured.crawlers.calledAgentMin >= floors.crawlers.calledAgentMin, said)
  assert.ok(measured.imitators.flaggedMin >= floors.imitators.flaggedMin, said)
  assert.ok(measured.imitators.calledHumanMax <= floors.imitators.calledHumanMax, said)
  assert.ok(measured.namedMin >= floors.namedMin, said)
  assert.ok(measured.marked.calledAgentMin >= floors.marked.calledAgentMin, said)
  assert.ok(measured.eceMax <= floors.eceMax, said)
}

function counts({ labels }: Evaluation, ...names: readonly string[]) {
  const sum = {
    ...{ n: 0, agent: 0, automation: 0, human: 0, spoof_flagged: 0 },
    ...{ self_named: 0, self_named_right: 0, marked: 0, marked_agent: 0 },
  }
  for (const name of names)
    for (const key of Object.keys(sum) as (keyof typeof sum)[]) sum[key] += labels[name]?.[key] ?? 0
  return sum
}
