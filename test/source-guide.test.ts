import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'

const guide = readFileSync('src/README.md', 'utf8')
const named = [...new Set([...guide.matchAll(/`([\w-]+(?:\/[\w.-]*)+)`/g)].map(([, path]) => path!))]
const OUTSIDE = /^test\//

test('every file and folder that src/README.md names exists', async () => {
  assert.ok(named.length > 60, `${named.length} paths were found`)
  const missing = named.filter(
    (path) => !existsSync(OUTSIDE.test(path) ? path : `src/${path}`) && !isCorner(path),
  )
  assert.deepEqual(missing, [])
})

/** The table of rooms names the rooms inside one by their last name: `known/` of classify. */
function isCorner(path: string): boolean {
  const rooms = ['classify', 'identity', 'proxy', 'store', 'plane', 'manage', 'fingerprint']
  return path.endsWith('/') && rooms.some((room) => existsSync(`src/${room}/${path}`))
}

test('a newcomer finds the room for each usual change', async () => {
  const table = guide.slice(guide.indexOf('## Where does a change go?'))
  const rows = table.split('\n').filter((line) => line.startsWith('| ') && line.includes('`'))
  assert.ok(rows.length >= 10, `${rows.length} changes`)
  for (const row of rows) {
    const paths = [...row.matchAll(/`([\w-]+(?:\/[\w.-]*)+)`/g)].map(([, path]) => path!)
    assert.ok(paths.length > 0, row)
    for (const path of paths) assert.ok(existsSync(`src/${path}`), `${row}: there is no src/${path}`)
  }
})

test('every room of src/ is in the guide', async () => {
  const map = readFileSync('test/imports.test.ts', 'utf8')
  const rows = map.slice(map.indexOf('const MAY_IMPORT'), map.indexOf('\n}\n'))
  const rooms = [...rows.matchAll(/^ {2}'?([\w-]+)'?: \[/gm)].map(([, room]) => room!)
  assert.ok(rooms.length > 12)
  assert.deepEqual(
    rooms.filter((room) => !guide.includes(`\`${room}/`)),
    [],
  )
})
