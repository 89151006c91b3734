import { BROWSERS } from './clients.ts'
import { drive } from './drive.ts'

for (const client of BROWSERS) drive(client)
