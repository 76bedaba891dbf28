/** Lines over time. Loaded only where something is drawn: the library is large. */
import { LineChart } from "echarts/charts";
import { AriaComponent, GridComponent, LegendComponent, TooltipComponent } from "echarts/components";
import { init, use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { useEffect, useRef } from "react";
import { useLanguage } from "@/words";
import { useLook } from "./theme";

use([LineChart, GridComponent, TooltipComponent, LegendComponent, AriaComponent, CanvasRenderer]);

export interface ChartLine {
  name: string;
  points: [at: number, value: number][];
}

interface Props {
  label: string;
  lines: ChartLine[];
  /** How a value is written. */
  format?: (value: number) => string;
  height?: number;
}

const LIGHT = ["#1554ad", "#1a7f37", "#9a5b00", "#8a2a8f", "#0b6674", "#c02b2b", "#5a6372", "#6b4ae0"];
const DARK = ["#6cb2ff", "#4cc76a", "#f0b145", "#d2a8ff", "#56d4dd", "#ff7b72", "#a3aab6", "#a899ff"];

const SHORT_MS = 10 * 60_000; // of a shorter span, seconds are told as well

function spanOf(lines: readonly ChartLine[]): number {
  const times = lines.flatMap(({ points }) => [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 0]);
  return times.length > 0 ? Math.max(...times) - Math.min(...times) : 0;
}

function look(dark: boolean) {
  return { text: dark ? "#b6bcc6" : "#4a5361", line: dark ? "#313a46" : "#d5dae2", ground: dark ? "#161b22" : "#ffffff", colours: dark ? DARK : LIGHT };
}

function drawing({ lines, format, label }: Props, dark: boolean, language: string) {
  const { text, line, ground, colours } = look(dark);
  const short = spanOf(lines) < SHORT_MS;
  const clock = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { hour: "2-digit", minute: "2-digit", second: short ? "2-digit" : undefined });
  const plain = (value: number) => String(Number(value < 1 ? value.toPrecision(2) : value.toFixed(2)));
  return {
    animation: false,
    color: colours,
    aria: { enabled: true, label: { description: label } },
    grid: { left: 8, right: 16, top: lines.length > 1 ? 36 : 12, bottom: 4, containLabel: true },
    legend: lines.length > 1 ? { type: "plain", top: 0, textStyle: { color: text }, itemHeight: 8 } : undefined,
    tooltip: { trigger: "axis", backgroundColor: ground, borderColor: line, textStyle: { color: text }, renderMode: "richText", valueFormatter: (value: unknown) => (format ?? plain)(Number(value)) },
    xAxis: { type: "time", minInterval: short ? 1000 : 60_000, axisLabel: { color: text, hideOverlap: true, formatter: (at: number) => clock.format(at) }, axisLine: { lineStyle: { color: line } } },
    yAxis: { type: "value", min: 0, axisLabel: { color: text, formatter: (value: number) => (format ?? plain)(value) }, splitLine: { lineStyle: { color: line } } },
    series: lines.map(({ name, points }) => ({ name, type: "line", data: points, showSymbol: points.length < 3, lineStyle: { width: 2 } })),
  };
}

export default function Chart(props: Props) {
  const { label, height = 240 } = props;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<ReturnType<typeof init> | null>(null);
  const { dark } = useLook();
  const { language } = useLanguage();
  useEffect(() => {
    if (!box.current) return undefined;
    const made = init(box.current);
    chart.current = made;
    const sized = new ResizeObserver(() => made.resize());
    sized.observe(box.current);
    return () => {
      sized.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);
  useEffect(() => {
    chart.current?.setOption(drawing(props, dark, language), { notMerge: true });
  }, [props, dark, language]);
  return <div ref={box} role="img" aria-label={label} style={{ height, minWidth: 0 }} />;
}
