import assert from 'node:assert/strict'
import { test } from 'tap'
import { logText } from '../src/shared/log-text.ts'

const TIME = '"time":"2026-11-26T07:48:05.123Z","pid":7'

function shown(fields: string, hasColour = false): string {
  return logText(`{"level":"info",${TIME},${fields}}\n`, hasColour)
}

test('a line has its time, level, message and fields', async () => {
  assert.equal(
    shown('"message":"ready","listen":"0.0.0.0:8443","workers":2,"plainListen":null,"upstreams":["a","b c"]'),
    '07:48:05.123 INFO  ready listen=0.0.0.0:8443 workers=2 plainListen=null upstreams=a,"b c"\n',
  )
})

test('the level has a colour where the terminal has colours', async () => {
  const line = `{"level":"error",${TIME},"message":"failed"}\n`
  assert.equal(logText(line, true), '07:48:05.123 \u001b[31mERROR\u001b[39m failed\n')
  assert.equal(logText(line, false), '07:48:05.123 ERROR failed\n')
})

test('an error shows its message and code, and the stack of a bug in lines of its own', async () => {
  assert.equal(
    shown('"message":"m","error":{"name":"Error","code":"ENOENT","message":"no file"}'),
    '07:48:05.123 INFO  m error="no file (ENOENT)"\n',
  )
  assert.match(
    shown(
      '"message":"m","error":{"name":"Error","code":null,"message":"oops","stack":"Error: oops\\n    at x"}',
    ),
    / error=oops\nError: oops\n {4}at x\n$/,
  )
})

test('bytes of a client cannot steer the terminal', async () => {
  const text = shown('"message":"m","path":"\\u001b[2J\\u009b31m\\u202e\\nINFO forged"')
  assert.doesNotMatch(text.slice(0, -1), /[^\x20-\x7e]/)
  assert.match(text, /path=".*\\u001b\[2J\\u009b31m\\u202e.*forged"\n$/)
})

test('a line that is not JSON is written as it is', async () => {
  assert.equal(logText('not json\n', false), 'not json\n')
})
