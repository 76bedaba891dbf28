import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const BUILT = resolve(import.meta.dirname, "../src/gpuyard/console/built");
const SMALLEST_PACKED = 1024;

/** Packs every text file once, so that the server need not do it on every request. */
function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(BUILT, { recursive: true, withFileTypes: true })) {
        const file = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !/\.(js|css|html|svg|json)$/.test(entry.name)) continue;
        const content = readFileSync(file);
        if (content.length >= SMALLEST_PACKED) writeFileSync(`${file}.gz`, gzipSync(content, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), packed()],
  resolve: { alias: { "@": resolve(import.meta.dirname, "src") } },
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1600,
    assetsInlineLimit: 0, // nothing as data: in a page, so that the content policy stays narrow
    rollupOptions: {
      input: {
        index: resolve(import.meta.dirname, "index.html"),
        terminal: resolve(import.meta.dirname, "terminal.html"), // a page of the gateway's, which needs nothing of the console
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8470" } },
  test: { environment: "jsdom", globals: false, include: ["src/**/*.test.{ts,tsx}"], setupFiles: ["src/test-setup.ts"] },
} as Parameters<typeof defineConfig>[0]);
