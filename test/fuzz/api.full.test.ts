import assert from 'node:assert/strict'
import { test } from 'tap'
import { VERSIONS } from '../../src/manage/api/operations.ts'
import { fuzzApi } from './api-fuzzer.ts'

for (const version of VERSIONS)
  test(`whatever is asked of ${version.prefix}, it keeps what its document promises`, async (t) => {
    const { operations } = version
    const { answers, failure } = await fuzzApi(t, version, {
      requests: 100 * operations.length,
      seed: Date.now() % 2 ** 31,
      milliseconds: 15_000,
    })
    assert.equal(failure, null)
    const done = new Set(
      [...answers.keys()].filter((name) => / 20\d$/.test(name)).map((name) => name.split(' ')[0]),
    )
    assert.ok(done.size > operations.length / 2, `only ${[...done].join(', ')} took anything`)
  })
