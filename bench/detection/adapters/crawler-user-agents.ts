import { load, serve } from '../adapter.ts'

const list = load<readonly { pattern: string }[]>('crawler-user-agents')
const patterns = list.map(({ pattern }) => new RegExp(pattern))

await serve((userAgent) => (patterns.some((pattern) => pattern.test(userAgent)) ? 'bot' : 'human'))
