import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { listening, makePlace, startApp, startGatehouse } from '../load/contenders.ts'
import { LOADS } from '../load/loads.ts'
import { Inspector } from './inspector.ts'
import { type CpuProfile, flameGraph, frames, hottest } from './flame-graph.ts'

/**
 * `npm run profile [-- --load NAME --seconds N --out FOLDER]`: where the processor's time of a gateway under load goes.
 * Writes a picture (SVG), the profile itself, which Chromium's DevTools open, and says what took most.
 */
const { values } = parseArgs({
  options: {
    load: { type: 'string', default: 'h1, 64' },
    seconds: { type: 'string', default: '5' },
    out: { type: 'string', default: '.' },
  },
})
const seconds = Number(values.seconds)
const load = LOADS.find(({ name }) => name.includes(values.load))
if (load === undefined) {
  process.stderr.write(
    `no load is called "${values.load}"; there are:\n  ${LOADS.map(({ name }) => name).join('\n  ')}\n`,
  )
  process.exit(2)
}
const PORT = 18_443
const INSPECTOR_PORT = 19_229
const folder = mkdtempSync(join(tmpdir(), 'profile-'))
const place = makePlace(folder, 18_080)
const app = startApp(place)
const gateway = startGatehouse(place, PORT, { nodeArgs: [`--inspect=127.0.0.1:${INSPECTOR_PORT}`] })
try {
  await listening(PORT)
  await load.run('https', PORT, 2, place.loadProcessor) // what is compiled once is not what is looked for
  const profiler = await Inspector.connect(INSPECTOR_PORT)
  const [, { requests }] = await Promise.all([
    profiler.ask('Profiler.start'),
    load.run('https', PORT, seconds, place.loadProcessor),
  ])
  const { profile } = (await profiler.ask('Profiler.stop')) as { profile: CpuProfile }
  profiler.close()
  const name = `profile-${load.name.replace(/\W+/g, '-')}`
  const all = frames(profile)
  const micros = all.totalMicros / requests
  const title = `${load.name}: ${requests} requests, ${micros.toFixed(1)} µs each, by the clock, while profiled`
  writeFileSync(join(values.out, `${name}.cpuprofile`), JSON.stringify(profile))
  writeFileSync(join(values.out, `${name}.svg`), flameGraph(all, title))
  process.stdout.write(`${title}\n`)
  for (const [function_, share] of hottest(all, 25))
    process.stdout.write(`${(share * 100).toFixed(1).padStart(5)} %  ${function_}\n`)
  process.stdout.write(`${join(values.out, `${name}.svg`)}, ${join(values.out, `${name}.cpuprofile`)}\n`)
} finally {
  for (const child of [gateway, app]) {
    child.kill()
    await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
}
