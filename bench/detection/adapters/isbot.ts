import { load, serve } from '../adapter.ts'

const { isbot } = load<{ isbot: (userAgent: string) => boolean }>('isbot')

await serve((userAgent) => (isbot(userAgent) ? 'bot' : 'human'))
