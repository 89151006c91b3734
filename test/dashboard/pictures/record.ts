import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { openGallery } from './gallery.ts'

export const RECORDED = new URL('recorded/', import.meta.url)

/**
 * `npm run pictures` records how every page of the dashboard looks, `npm run pictures -- policy` only that scene. Look at
 * what changed, then commit it.
 */
async function record(names: readonly string[]): Promise<void> {
  const closers: (() => unknown)[] = []
  const { machine, sheets } = await openGallery({
    teardown: (close: () => unknown) => void closers.unshift(close),
  })
  if (names.length === 0) rmSync(RECORDED, { recursive: true, force: true })
  mkdirSync(RECORDED, { recursive: true })
  writeFileSync(new URL('machine.json', RECORDED), `${JSON.stringify(machine)}\n`)
  for await (const { scene, bytes } of sheets(names)) {
    writeFileSync(new URL(`${scene.name}.webp`, RECORDED), bytes)
    process.stdout.write(`${scene.name}: ${bytes.length} bytes\n`)
  }
  for (const close of closers) await close()
}

if (import.meta.main) await record(process.argv.slice(2))
