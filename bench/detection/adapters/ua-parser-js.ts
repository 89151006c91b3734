import { load, serve } from '../adapter.ts'

const { isBot } = load<{ isBot: (userAgent: string) => boolean }>('ua-parser-js/bot-detection')

await serve((userAgent) => (isBot(userAgent) ? 'bot' : 'human'))
