import { load, serve } from '../adapter.ts'

interface Parsed {
  readonly bot: unknown
}
const Detector = load<new () => { parse: (userAgent: string) => Parsed }>('device-detector-js')
const detector = new Detector()

await serve((userAgent) => (detector.parse(userAgent).bot === null ? 'human' : 'bot'))
