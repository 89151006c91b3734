import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import { type CorpusRow, parseCorpusRow } from '../../src/classify/known/corpus.ts'
import { NameBook } from '../../src/classify/known/own-name.ts'
import { judgeRow } from '../../src/classify/measure/evaluation.ts'
import { loadKnowledge } from '../../src/runtime/signatures/knowledge-files.ts'

const KNOWLEDGE = await loadKnowledge(null, null)
const NAMES = new NameBook(KNOWLEDGE.list)
const RECORDED = 'test/classify/recorded.jsonl'
const SHARED = '../shared/corpus/clients.jsonl'

/** Extensions and company proxies remove single headers. They stay people. */
for (const path of [RECORDED, SHARED])
  test(`no person in ${path} is flagged because one header is missing`, {
    skip: !existsSync(path) && `${path} is not there`,
  }, async () => {
    const flagged: string[] = []
    let tried = 0
    for (const row of people(path))
      for (const name of namesIn(row)) {
        const judgement = judgeRow(KNOWLEDGE, without(row, name), NAMES)
        if (judgement === null) continue
        tried++
        const { kind, evidence } = judgement.verdict
        if (kind === 'agent' || kind === 'automation')
          flagged.push(
            `${row.client} (${row.id}) without ${name}: ${evidence.map((each) => each.kind).join(' ')}`,
          )
      }
    assert.ok(tried > 50, String(tried))
    assert.deepEqual(flagged, [])
  })

function people(path: string): readonly CorpusRow[] {
  const rows = readFileSync(path, 'utf8').trimEnd().split('\n')
  return rows
    .map((row) => parseCorpusRow(JSON.parse(row)))
    .filter(({ label, requests }) => label === 'human-browser' && requests.length > 0)
}

function namesIn({ requests }: CorpusRow): ReadonlySet<string> {
  const names = requests.flatMap(({ head }) => head.rawHeaders.filter((_name, i) => i % 2 === 0))
  return new Set(names.map((name) => name.toLowerCase()).filter((name) => !name.startsWith(':')))
}

function without(row: CorpusRow, name: string): CorpusRow {
  const requests = row.requests.map((request) => {
    const { rawHeaders } = request.head
    const kept = rawHeaders.filter((_text, i) => rawHeaders[i - (i % 2)]!.toLowerCase() !== name)
    return { ...request, head: { ...request.head, rawHeaders: kept } }
  })
  return { ...row, requests }
}
