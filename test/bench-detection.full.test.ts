import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Test, test } from 'tap'
import { LOCAL, missing, start } from '../bench/detection/detectors.ts'
import { measure, summed } from '../bench/detection/measure.ts'
import { readAnswer } from '../bench/detection/protocol.ts'
import { tableOf } from '../bench/detection/table.ts'
import type { CorpusRow } from '../src/classify/known/corpus.ts'
import { truthOf } from '../src/classify/measure/truth.ts'
import { readCorpus } from '../src/commands/record/corpus-file.ts'

const ROWS = await someRows()

test('a detector that speaks the protocol gets every request, and its last answers are counted', async (t) => {
  const asked: { connection: string; body: Body; key: string | undefined }[] = []
  const url = await fakeDetector(t, (body, request) => {
    asked.push({
      connection: String(request.headers['x-connection']),
      body,
      key: request.headers.authorization,
    })
    return isCurl(Object.entries(body.headers).flat(2))
      ? { verdict: 'automation', confidence: 0.1 }
      : { verdict: 'agent', confidence: 0.9 }
  })
  const result = await measure({ name: 'fake', url, key: 'secret', pid: null }, ROWS)
  const requests = ROWS.reduce((sum, row) => sum + row.requests.length, 0)
  assert.equal(result.requests, requests)
  assert.equal(asked.length, 2 * requests)
  assert.deepEqual(new Set(asked.map(({ connection }) => connection)), new Set(ROWS.map(({ id }) => id)))
  assert.ok(asked.every(({ key }) => key === 'Bearer secret'))
  assert.deepEqual(
    asked.slice(0, ROWS[0]!.requests.length).map(({ body }) => [body.method, body.path]),
    ROWS[0]!.requests.map(({ head }) => [head.method, head.target]),
  )
  const curls = ROWS.filter(({ requests }) => isCurl(requests.at(-1)!.head.rawHeaders)).length
  const { confusion } = result
  assert.ok(curls > 0)
  assert.equal(confusion.automation.automation, curls)
  assert.equal(
    confusion.automation.agent,
    ROWS.filter(({ label }) => label === 'http-library').length - curls,
  )
  assert.equal(confusion.human.agent, ROWS.filter(({ label }) => label === 'human-browser').length)
  assert.equal(result.cpuUs, null)
  assert.match(tableOf([result]), /^fake +agents +\d+ .* 100\.0 % /m)
})

test('an invalid answer is named with its connection', async (t) => {
  for (const [answer, expected] of [
    [{ verdict: 'robot' }, /fake: connection .*: verdict must be one of agent, .*, not "robot"/],
    [{ verdict: 'bot', confidence: 7 }, /confidence must be a number from 0 to 1, not 7/],
  ] as const) {
    const url = await fakeDetector(t, () => answer)
    await assert.rejects(measure({ name: 'fake', url, key: null, pid: null }, ROWS), expected)
  }
  assert.deepEqual(readAnswer('{"verdict":"bot"}'), { verdict: 'bot', probability: null })
})

test('calibration is measured on the probability that a client is an agent', async () => {
  const judged = [
    { truth: 'agent', answer: { verdict: 'agent', probability: 0.95 } },
    { truth: 'human', answer: { verdict: 'agent', probability: 0.95 } },
    { truth: 'human', answer: { verdict: 'human', probability: 0.05 } },
  ] as const
  const { brier, ece } = summed(judged)
  assert.equal(brier?.toFixed(4), ((0.05 ** 2 + 0.95 ** 2 + 0.05 ** 2) / 3).toFixed(4))
  assert.equal(ece?.toFixed(4), ((2 * 0.45 + 0.05) / 3).toFixed(4))
  assert.equal(summed([{ truth: 'human', answer: { verdict: 'bot', probability: null } }]).brier, null)
})

for (const local of LOCAL)
  test(`${local.name} can be measured`, { skip: missing(local) ?? false }, async (t) => {
    const detector = await start(local)
    t.teardown(detector.stop)
    const { confusion, cpuUs } = await measure(detector, ROWS)
    assert.ok(cpuUs !== null && cpuUs >= 0)
    const { human, automation } = confusion
    const people = ROWS.filter(({ label }) => label === 'human-browser').length
    assert.equal(local.name === 'nothing' ? human.unknown : human.human, people)
    if (local.name !== 'gatehouse') return
    const tools = ROWS.filter(({ label }) => label === 'http-library').length
    assert.ok(automation.automation >= 0.95 * tools, `${automation.automation} of ${tools}`)
  })

function isCurl(headers: readonly string[]): boolean {
  const at = headers.findIndex((name) => name.toLowerCase() === 'user-agent')
  return at !== -1 && headers[at + 1]!.startsWith('curl/')
}

interface Body {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[]>>
}

/** One connection of each client, and of curl all. */
async function someRows(): Promise<readonly CorpusRow[]> {
  const rows: CorpusRow[] = []
  const refuse = (line: number, fault: Error) => assert.fail(`${line}: ${fault.message}`)
  for await (const { row } of readCorpus(createReadStream('test/classify/recorded.jsonl'), refuse)) {
    if (row.requests.length === 0 || truthOf(row.label) === null) continue
    if (row.client === 'curl' || !rows.some(({ client }) => client === row.client)) rows.push(row)
  }
  return rows
}

async function fakeDetector(
  t: Test,
  answer: (body: Body, request: IncomingMessage) => object,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const body = JSON.parse(Buffer.concat(parts).toString()) as Body
    response.end(JSON.stringify(answer(body, request)))
  })
  t.teardown(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
