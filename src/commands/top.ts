import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { Fault } from '../shared/fault.ts'
import { emptySeconds, type TrafficSample, withSecond } from '../manage/intake/traffic.ts'
import { USAGE } from '../terminal/arguments.ts'
import { asked, heard } from './access/ask-running.ts'
import type { CommandAction, Arguments, ExitCode } from '../terminal/command.ts'
import type { Io } from '../terminal/io.ts'
import { RUNNING_OPTIONS, urlGiven } from '../runtime/running.ts'
import { Screen } from '../terminal/screen.ts'
import { topLines, type TopState } from './top-view.ts'

export const top: CommandAction = {
  name: 'top',
  summary: 'Watch which agents send requests to a running Gatehouse',
  description: [
    'On a terminal, shows a table that refreshes every second, until q or Ctrl-C; otherwise prints one table after the other. With --json, prints one line for each second. The key is an API key with the scope read, or an access token. It is read from the file, otherwise from GATEHOUSE_KEY.',
    'The numbers cover all proxies. If the management plane is unreachable, says so and continues once it is back.',
  ],
  operands: [],
  options: [
    { name: 'count', value: 'N', description: 'Stop after this many seconds (default: never)' },
    { name: 'json', description: 'Print JSON, a line for each second' },
    ...RUNNING_OPTIONS,
  ],
  examples: [
    { command: 'top --key-file ~/.gatehouse-key', description: 'Runs until you type q' },
    { command: 'top --json --count 60 > minute.jsonl', description: 'One minute, for programs' },
  ],
  run,
}

async function run(given: Arguments, io: Io): Promise<ExitCode> {
  const count = countGiven(given)
  const isJson = given.flag('json')
  const isDrawn = io.isTerminal && !isJson
  const stop = new AbortController()
  const quit = () => stop.abort()
  for (const signal of SIGNALS) process.once(signal, quit)
  const screen = isDrawn ? new Screen(io, quit) : null
  try {
    await watch(given, io, stop, count, (state, second) => {
      if (isJson) io.stdout.write(second === null ? '' : `${JSON.stringify(second)}\n`)
      else if (screen !== null) screen.draw(topLines(state, io.columns, io.rows))
      else io.stdout.write(`${topLines(state, io.columns, PLAIN_ROWS).join('\n')}\n\n`)
    })
  } finally {
    screen?.close()
    for (const signal of SIGNALS) process.off(signal, quit)
    stop.abort()
  }
  return 0
}

type ShowState = (state: TopState, second: z.output<typeof told> | null) => void

/** Runs until `stop`, or for this many seconds with data. */
async function watch(
  given: Arguments,
  io: Io,
  { signal }: AbortController,
  count: number,
  shown: ShowState,
): Promise<void> {
  const url = urlGiven(given, io).href.replace(/\/$/, '')
  let state: TopState = { url, seconds: emptySeconds(Date.now(), PLACES), hour: [], trouble: null }
  let left = count
  let wasHeard = false
  while (left > 0 && !signal.aborted) {
    try {
      state = { ...state, hour: await lastHour(given, io), trouble: null }
      shown(state, null)
      for await (const said of heard(given, io, TRAFFIC, signal)) {
        const second = told.parse(said)
        wasHeard = true
        state = { ...state, seconds: withSecond(state.seconds, Date.now(), second.data) }
        if (left % HOUR_EVERY === 0) state = { ...state, hour: await lastHour(given, io) }
        shown(state, second)
        if (--left === 0) return
      }
    } catch (error) {
      // A first connection that fails is probably a wrong URL or key, so give up.
      if (!(error instanceof Fault) || !wasHeard || error.code === 'REFUSED') throw error
      state = { ...state, trouble: error.message }
      shown(state, null)
    }
    await wait(AGAIN_MS, undefined, { signal }).catch(() => undefined)
  }
}

async function lastHour(given: Arguments, io: Io): Promise<TopState['hour']> {
  return (await asked(given, io, statistics, '/v1/stats?window=1h', null)).detection.by_agent
}

function countGiven(given: Arguments): number {
  const text = given.value('count')
  if (text === null) return Number.POSITIVE_INFINITY
  if (!/^[1-9]\d{0,8}$/.test(text))
    throw new Fault(USAGE, `--count must be a number from 1 on, not "${text}"`)
  return Number(text)
}

const counts = z.record(z.string(), z.number())
const traffic: z.ZodType<TrafficSample> = z.object({
  requests: z.number(),
  by_verdict: counts,
  by_action: counts,
  by_category: counts,
  by_purpose: counts.default({}),
  agents: z.array(z.object({ id: z.string(), requests: z.number() })),
})
const told = z.object({ timestamp: z.string(), data: traffic })
const agent = z.object({
  agent_id: z.string(),
  agent_name: z.string(),
  agent_category: z.string().nullable(),
  agent_purpose: z.array(z.string()).default([]),
  requests: z.number(),
  blocked: z.number(),
})
const statistics = z.object({ detection: z.object({ by_agent: z.array(agent) }) })
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const TRAFFIC = '/v1/events?types=traffic'
const PLACES = 60
const PLAIN_ROWS = 24
/** Number of seconds between two requests for the last hour. */
const HOUR_EVERY = 5
const AGAIN_MS = 2_000
