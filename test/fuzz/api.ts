import { randomInt } from 'node:crypto'
import { parseArgs } from 'node:util'
import { V1, V2 } from '../../src/manage/api/operations.ts'
import { fuzzApi } from './api-fuzzer.ts'

/** `node test/fuzz/api.ts [--version 1|2] [--requests N] [--seconds N] [--seed N]`: the exit code is 1 when a promise is broken. */
const { values } = parseArgs({
  options: {
    version: { type: 'string', default: '1' },
    requests: { type: 'string', default: '20000' },
    seconds: { type: 'string', default: '3600' },
    seed: { type: 'string', default: `${randomInt(1, 2 ** 31)}` },
  },
})
const teardowns: (() => unknown)[] = []
const startMs = performance.now()
const { answers, requests, failure } = await fuzzApi(
  { teardown: (work) => teardowns.unshift(work) },
  values.version === '2' ? V2 : V1,
  {
    requests: Number(values.requests),
    seed: Number(values.seed),
    milliseconds: Number(values.seconds) * 1000,
  },
)
for (const teardown of teardowns) await teardown()
for (const [name, times] of [...answers].toSorted()) process.stdout.write(`${name}: ${times}\n`)
const seconds = (performance.now() - startMs) / 1000
process.stdout.write(`${requests} requests in ${seconds.toFixed(1)} s from seed ${values.seed}\n`)
if (failure !== null) {
  process.stdout.write(`${failure}\n`)
  process.exitCode = 1
}
