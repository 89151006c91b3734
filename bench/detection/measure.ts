import { request as httpRequest } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { Agent as PlainAgent } from 'node:http'
import type { CorpusRow } from '../../src/classify/known/corpus.ts'
import { truthOf } from '../../src/classify/measure/truth.ts'
import type { Class } from '../../src/classify/known/weights.ts'
import { cpuMs, type Detector } from './detectors.ts'
import { type Answer, bodyOf, readAnswer, SAID, type Said } from './protocol.ts'

/** What a detector said of one connection, of a client whose class is known. */
export interface Judged {
  readonly truth: Class
  readonly answer: Answer
}

export interface Result {
  readonly name: string
  /** For each class, how often each verdict was given. */
  readonly confusion: Readonly<Record<Class, Readonly<Record<Said, number>>>>
  /** Of the probability that a client is an agent; `null` if the detector gives none. */
  readonly brier: number | null
  readonly ece: number | null
  readonly requests: number
  /** Processor time of the detector for a request, with HTTP; `null` if unknown. */
  readonly cpuUs: number | null
  /** From a request to its answer, one at a time. */
  readonly medianUs: number | null
}

/**
 * Sends every request of every connection to a detector, in order and one at a time. The answer to the last
 * request of a connection counts. Throws an Error at an invalid answer.
 */
export async function measure(detector: Detector, rows: readonly CorpusRow[]): Promise<Result> {
  const connections = rows.filter(({ label, requests }) => requests.length > 0 && truthOf(label) !== null)
  const asker = new Asker(detector)
  try {
    // Just-in-time compilation is over after the first round, which is not measured.
    await asker.askAll(connections)
    asker.times.length = 0
    const before = detector.pid === null ? 0 : cpuMs(detector.pid)
    const judged = await asker.askAll(connections)
    const requests = asker.times.length
    const cpuUs = detector.pid === null ? null : ((cpuMs(detector.pid) - before) * 1000) / requests
    const medianUs = asker.times.toSorted((a, b) => a - b)[requests >> 1]! * 1000
    return { name: detector.name, ...summed(judged), requests, cpuUs, medianUs }
  } finally {
    asker.close()
  }
}

export function summed(judged: readonly Judged[]): Pick<Result, 'confusion' | 'brier' | 'ece'> {
  const confusion = { agent: none(), automation: none(), human: none() }
  for (const { truth, answer } of judged) confusion[truth][answer.verdict]++
  const told = judged
    .filter(({ answer }) => answer.probability !== null)
    .map(({ truth, answer }) => ({ said: answer.probability!, is: truth === 'agent' ? 1 : 0 }))
  if (told.length === 0) return { confusion, brier: null, ece: null }
  return { confusion, brier: mean(told.map(({ said, is }) => (said - is) ** 2)), ece: eceOf(told) }
}

class Asker {
  readonly times: number[] = []
  readonly #detector: Detector
  readonly #agent: PlainAgent
  readonly #url: URL

  constructor(detector: Detector) {
    this.#detector = detector
    this.#url = new URL('/v1/detect', detector.url)
    const options = { keepAlive: true, maxSockets: 1 }
    this.#agent = this.#url.protocol === 'https:' ? new Agent(options) : new PlainAgent(options)
  }

  close(): void {
    this.#agent.destroy()
  }

  async askAll(rows: readonly CorpusRow[]): Promise<readonly Judged[]> {
    const judged: Judged[] = []
    for (const row of rows) {
      let answer: Answer | null = null
      for (const request of row.requests) answer = await this.#ask(row.id, bodyOf(row, request))
      judged.push({ truth: truthOf(row.label)!, answer: answer! })
    }
    return judged
  }

  async #ask(connection: string, body: string): Promise<Answer> {
    const { name, key } = this.#detector
    const began = performance.now()
    const { status, text } = await this.#post(body, {
      'Content-Type': 'application/json',
      'X-Connection': connection,
      ...(key === null ? {} : { Authorization: `Bearer ${key}` }),
    })
    this.times.push(performance.now() - began)
    if (status !== 200) throw new Error(`${name}: connection ${connection}: status ${status}: ${text}`)
    try {
      return readAnswer(text)
    } catch (error) {
      throw new Error(`${name}: connection ${connection}: ${(error as Error).message}`, { cause: error })
    }
  }

  #post(body: string, headers: Readonly<Record<string, string>>): Promise<{ status: number; text: string }> {
    const send = this.#url.protocol === 'https:' ? httpsRequest : httpRequest
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', agent: this.#agent, headers }
      const asked = send(this.#url, options, (response) => {
        const parts: Buffer[] = []
        response.on('data', (part: Buffer) => parts.push(part)).once('error', reject)
        response.once('end', () =>
          resolve({ status: response.statusCode!, text: Buffer.concat(parts).toString() }),
        )
      })
      asked.once('error', reject).end(body)
    })
  }
}

function none(): Record<Said, number> {
  return Object.fromEntries(SAID.map((said) => [said, 0])) as Record<Said, number>
}

/** Expected calibration error in ten bins. */
function eceOf(told: readonly { said: number; is: number }[]): number {
  let sum = 0
  for (let bin = 0; bin < BINS; bin++) {
    const inside = told.filter(({ said }) => Math.min(Math.floor(said * BINS), BINS - 1) === bin)
    if (inside.length === 0) continue
    sum += inside.length * Math.abs(mean(inside.map(({ said }) => said)) - mean(inside.map(({ is }) => is)))
  }
  return sum / told.length
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

const BINS = 10
