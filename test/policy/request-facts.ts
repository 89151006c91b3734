import type { Facts } from '../../src/policy/facts.ts'

export const JA4 = 't13d1516h2_8daaf6152771_e5627efa2ab1'
const STABLE = 'gs1-t13d1514h2-8daaf6152771-de4a06bb82e3'
const JA4H = 'ge11nn05enus_9ed1ff1f7b03_000000000000_000000000000'

export const SIGNED = { method: 'web-bot-auth', agent: 'https://a.test', key: null } as const
/** Of a request by GPTBot, of which everything is known but a proof. */
const AGENT = { id: 'gptbot', name: 'GPTBot', category: 'crawler', purposes: ['archive', 'training'] }
export const FACTS: Facts = {
  method: 'GET',
  host: 'Shop.Example.test:8443',
  path: '/api/items?id=1',
  address: '192.0.2.7',
  rawHeaders: [
    'Host',
    'Shop.Example.test:8443',
    'USER-AGENT',
    'GPTBot/1.2',
    'Accept',
    'text/html',
    'accept',
    '*/*',
  ],
  print: {
    connection: { ja4: JA4, stable: STABLE, http2: '1:65536;2:0|15663105|0|m,a,s,p', noHello: null },
    ja4h: JA4H,
  },
  verdict: {
    ...{ kind: 'agent', agent: AGENT, confidence: 0.8 },
    nameConfidence: 0.5,
    software: { id: 'gptbot', name: 'GPTBot', kind: 'agent' },
    proof: null,
    conflicts: [],
    evidence: [
      { kind: 'user-agent', detail: 'GPTBot', weight: 0.5 },
      { kind: 'spoofed-browser', detail: 'no browser greets like this', weight: 0.3 },
    ],
  },
  forged: ['x-agent-verdict'],
}
