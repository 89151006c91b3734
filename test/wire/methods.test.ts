import assert from 'node:assert/strict'
import { METHODS } from 'node:http'
import { test } from 'tap'
import { isMiscasedMethod, isRegisteredMethod } from '../../src/wire/methods.ts'

/** The IANA HTTP Method Registry, without `*`, which has no case. */
const REGISTRY =
  `ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK MERGE MKACTIVITY
  MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH PATCH POST PRI PROPFIND PROPPATCH PUT QUERY REBIND
  REPORT SEARCH TRACE UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL`.split(/\s+/)

test('every registered method is known, and each other spelling of its case is a miscased one', async () => {
  for (const method of REGISTRY) {
    assert.ok(isRegisteredMethod(method), method)
    assert.ok(!isMiscasedMethod(method), method)
    const first = method[0]! + method.slice(1).toLowerCase()
    const last = method.slice(0, -1) + method.at(-1)!.toLowerCase()
    for (const sent of [method.toLowerCase(), first, last]) {
      assert.ok(!isRegisteredMethod(sent), sent)
      assert.ok(isMiscasedMethod(sent), sent)
    }
  }
})

test('an unregistered method is not a spelling of a registered one', async () => {
  const known = METHODS.filter((method) => !REGISTRY.includes(method))
  for (const method of [...known, 'purge', 'Purge', 'GETS', 'GE', 'get ', '', '*', 'x'.repeat(9000)]) {
    assert.ok(!isRegisteredMethod(method), method)
    assert.ok(!isMiscasedMethod(method), method)
  }
})
