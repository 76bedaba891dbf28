/** The board, kept current by news; how busy cards are is no news, so it may be asked for again now and then. */
import { useQuery } from "@tanstack/react-query";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";

export const useBoard = (everyMs: number | false = false) =>
  useQuery({
    queryKey: keys.board,
    queryFn: () => asked(api.GET("/api/v1/board")),
    refetchInterval: everyMs,
    structuralSharing: false, // thousands of cards: comparing costs more than drawing
  });
