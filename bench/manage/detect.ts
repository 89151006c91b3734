import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

/**
 * `npm run bench:detect [-- --rounds N --seconds N]`: POST /v1/detect with a key, a User-Agent, a JA4 and a browser's
 * headers, against a Koa route that reads nothing and answers {"ok":true}. Each is a process, both on one processor; wrk
 * is on the other, and they take turns. The figure is the median of the rounds' ratios.
 */
const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, seconds: { type: 'string', default: '2' } },
})
const folder = mkdtempSync(join(tmpdir(), 'bench-detect-'))
const body = {
  user_agent:
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
  ja4: 't13d1517h2_8daaf6152771_cb7bf5808d99',
  headers: {
    'sec-ch-ua': '"Chromium";v="156", "Not)A;Brand";v="8"',
    'sec-ch-ua-mobile': '?0',
    'sec-ch-ua-platform': '"Linux"',
    'upgrade-insecure-requests': '1',
    'user-agent':
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
    accept:
      'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7',
    'sec-fetch-site': 'none',
    'sec-fetch-mode': 'navigate',
    'sec-fetch-user': '?1',
    'sec-fetch-dest': 'document',
    'accept-encoding': 'gzip, deflate, br, zstd',
    'accept-language': 'en-US,en;q=0.9',
    priority: 'u=0, i',
  },
}

/** As bin.js starts `up`. */
const FLAGS = [
  '--max-semi-space-size=16',
  '--v8-pool-size=1',
  '--no-allocation-site-pretenuring',
  '--heap-growing-percent=150',
]
const WARM_REQUESTS = 15_000

class Contender {
  readonly rates: number[] = []
  /** Of the processor, for each request. */
  readonly microseconds: number[] = []
  readonly #pid: number
  readonly #port: number
  readonly #script: string

  static async start(name: 'empty' | 'manage'): Promise<Contender> {
    const server = new URL('server.ts', import.meta.url).pathname
    const child = spawn('taskset', ['-c', '0', process.execPath, ...FLAGS, server, name], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const line = await firstLine(child.stdout)
    const { port, key } = JSON.parse(line) as { port: number; key: string }
    const script = join(folder, `${name}.lua`)
    const text = JSON.stringify(JSON.stringify(body))
    writeFileSync(
      script,
      `wrk.method = "POST"\nwrk.body = ${text}\nwrk.headers["Content-Type"] = "application/json"\nwrk.headers["Authorization"] = "Bearer ${key}"\n`,
    )
    return new Contender(child.pid!, port, script)
  }

  private constructor(pid: number, port: number, script: string) {
    this.#pid = pid
    this.#port = port
    this.#script = script
  }

  run(seconds: number): number {
    const url = `http://127.0.0.1:${this.#port}/v1/detect`
    const before = this.#cpuMs()
    const said = execFileSync(
      'taskset',
      ['-c', '1', 'wrk', '-t1', '-c32', `-d${seconds}s`, '-s', this.#script, url],
      { encoding: 'utf8' },
    )
    if (/Non-2xx/.test(said)) throw new Error(said)
    const rate = Number(/Requests\/sec:\s*([\d.]+)/.exec(said)![1])
    const requests = Number(/(\d+) requests in/.exec(said)![1])
    this.rates.push(rate)
    this.microseconds.push(((this.#cpuMs() - before) * 1000) / requests)
    return rate
  }

  /** Of the process, in ticks of 10 ms. */
  #cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return (Number(stat[11]) + Number(stat[12])) * 10
  }
}

async function firstLine(stream: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(stream)) return line
  throw new Error('the server ended')
}

function median(numbers: readonly number[]): number {
  return quantile(numbers, 0.5)
}

function quantile(numbers: readonly number[], part: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length * part)]!
}

/** The median and the quartiles. */
function said(ratios: readonly number[]): string {
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(ratios, part).toFixed(2))
  return `${middle} (${low} to ${high})`
}

try {
  const empty = await Contender.start('empty')
  const manage = await Contender.start('manage')
  // Until the code is compiled for what it does, however busy the machine is.
  for (const each of [empty, manage]) for (let seen = 0; seen < WARM_REQUESTS; ) seen += each.run(1)
  for (const each of [empty, manage]) each.rates.length = each.microseconds.length = 0
  for (let round = 0; round < Number(values.rounds); round++) {
    empty.run(Number(values.seconds))
    manage.run(Number(values.seconds))
  }
  const ratios = manage.rates.map((rate, i) => rate / empty.rates[i]!)
  const ofCpu = manage.microseconds.map((cost, i) => empty.microseconds[i]! / cost)
  for (const [name, { rates, microseconds }] of Object.entries({
    'an empty Koa route': empty,
    'POST /v1/detect': manage,
  }))
    process.stdout.write(
      `${name.padEnd(20)}${median(rates).toFixed(0).padStart(8)} requests/s${median(microseconds).toFixed(1).padStart(8)} µs of processor each\n`,
    )
  process.stdout.write(`ratio ${said(ratios)}, by the processor's time ${said(ofCpu)}\n`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
