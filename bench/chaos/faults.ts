import dns from 'node:dns'
import { close, open, openSync, readSync } from 'node:fs'
import { FAULTS_BYTES, type Faults, NAMES_SUFFIX } from './faults-file.ts'

/**
 * Loaded into every process of the gateway that is disturbed, before anything of its own: its wall clock and its
 * resolver, as a file says that they should be. The file is opened once, so that it can be read when there are no more
 * descriptors. What Node and OpenSSL do of themselves (timers, the times of session tickets) keeps the real clock.
 */
function disturb(descriptor: number): void {
  let faults = readFaults(descriptor)
  setInterval(() => {
    faults = readFaults(descriptor)
  }, BEAT_MS).unref()
  shiftClock(() => faults.clockMs)
  misleadResolver(() => faults)
}

function readFaults(descriptor: number): Faults {
  const bytes = Buffer.alloc(FAULTS_BYTES)
  readSync(descriptor, bytes, 0, FAULTS_BYTES, 0)
  return JSON.parse(bytes.toString()) as Faults
}

function shiftClock(offsetMs: () => number): void {
  const RealDate = Date
  const realNow = Date.now.bind(Date)
  const now = () => realNow() + offsetMs()
  const shifted: DateConstructor = new Proxy(RealDate, {
    construct: (target, given, made) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, made === shifted ? target : made),
    apply: () => new RealDate(now()).toString(),
    get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
  })
  globalThis.Date = shifted
}

/** Of our names alone. As getaddrinfo does, one that is not answered holds a thread of the pool. */
function misleadResolver(faults: () => Faults): void {
  type Told = (error: Error | null, found?: unknown, family?: number) => void
  const real = dns.lookup as (name: string, options: object, told: Told) => void
  const lookup = (name: string, options: { readonly all?: boolean }, told: Told) => {
    if (!name.endsWith(NAMES_SUFFIX)) return real(name, options, told)
    const { names, waitsAt } = faults()
    const fail = (code: string) => told(Object.assign(new Error(`${code} ${name}`), { code }))
    const find = () =>
      options.all === true ? told(null, [{ address: ADDRESS, family: 4 }]) : told(null, ADDRESS, 4)
    if (names === 'found') return void process.nextTick(find)
    if (names !== 'silent') return void process.nextTick(fail, names)
    open(waitsAt, 'r', (error, waited) => {
      if (error === null) close(waited)
      fail('EAI_AGAIN')
    })
  }
  dns.lookup = lookup as typeof dns.lookup
}

const ADDRESS = '127.0.0.1'
const BEAT_MS = 50

const { CHAOS_FAULTS_FILE: file } = process.env
if (file !== undefined) disturb(openSync(file, 'r'))
