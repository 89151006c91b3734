import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'tap'
import { type Evaluation, evaluate } from '../../src/classify/measure/evaluation.ts'
import { PeopleShown } from '../../src/classify/measure/differences.ts'
import { crossValidate } from '../../src/commands/fitting.ts'
import { assertFloors, judged, KNOWLEDGE, RECORDED, rowsOf } from './floors.ts'

const SHARED = '../shared/corpus/clients.jsonl'
const isThere = existsSync(SHARED)
const SKIP = { skip: !isThere && `${SHARED} is not there; only ours were measured` }

test('with the shared recordings, as they are judged', SKIP, async () => {
  assertFloors(await judged([RECORDED, SHARED]), {
    people: { calledAgentMax: 0, calledHumanMin: 0.99 },
    programs: { calledAgentMin: 0.994 },
    libraries: { calledEitherMin: 1, calledAgentMax: 0.003 },
    crawlers: { calledAgentMin: 0.95 },
    // Five connections with a Safari profile show nothing that Safari does not.
    imitators: { flaggedMin: 0.94, calledHumanMax: 0.05 },
    namedMin: 0.996,
    marked: { calledAgentMin: 0.96 },
    eceMax: 0.03,
  })
})

test('with the shared recordings, each client judged by what is known of the others', SKIP, async () => {
  assertFloors(await crossValidated([RECORDED, SHARED], 5), {
    // Browsers with settings of companies, held back with their measured values, are `unknown`.
    people: { calledAgentMax: 0, calledHumanMin: 0.93 },
    programs: { calledAgentMin: 0.99 },
    libraries: { calledEitherMin: 0.998, calledAgentMax: 0.01 },
    crawlers: { calledAgentMin: 0.95 },
    imitators: { flaggedMin: 0.92, calledHumanMax: 0.06 },
    namedMin: 0.98,
    marked: { calledAgentMin: 0.96 },
    eceMax: 0.03,
  })
})

test(
  'a person with the usual settings leaves no mark that other people with Chromium or Firefox do not',
  SKIP,
  async () => {
    const rows = await rowsOf([RECORDED, SHARED])
    const ofPeople = rows.filter(
      ({ client, label, requests, situation }) =>
        label === 'human-browser' &&
        /^(?:chromium|firefox)/.test(client) &&
        requests.length > 0 &&
        !/^(?:no |TLS 1\.2|resist|global|german|private|incognito|dark)/.test(situation ?? ''),
    )
    assert.ok(ofPeople.length >= 30)
    for (const one of ofPeople) {
      const others = new PeopleShown(ofPeople.filter((row) => row !== one))
      assert.deepEqual(others.differencesOf(one), [], one.id)
    }
  },
)

async function crossValidated(paths: readonly string[], folds: number): Promise<Evaluation> {
  return evaluate(crossValidate(KNOWLEDGE.list, await rowsOf(paths), folds), 0)
}
