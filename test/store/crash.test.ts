import assert from 'node:assert/strict'
import { test } from 'tap'
import { drill } from './crash-drill.ts'
import { KINDS } from './databases.ts'

// `node test/store/crash-drill.ts --rounds 50` is the whole of it.
for (const kind of KINDS)
  test(`${kind}: kill -9 loses nothing that was acknowledged, and leaves nothing half done`, async (t) => {
    const { killed, acknowledged } = await drill(kind, 3, t)
    assert.ok(killed >= 1 && acknowledged > 0, `${killed} killed, ${acknowledged} acknowledged`)
  })
